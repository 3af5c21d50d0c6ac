import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { scrollSpeed } from "../../static/js/calendar/pointer.js";
import { pollWhileVisible } from "../../static/js/calendar/polling.js";

/** A document that can be hidden, under a clock of the test's own. */
function visiblePage() {
  const page = new EventTarget();
  page.hidden = false;
  page.show = (isShown) => {
    page.hidden = !isShown;
    page.dispatchEvent(new Event("visibilitychange"));
  };
  return page;
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

async function pass(ms) {
  mock.timers.tick(ms);
  await settle();
}

test("a task runs while the page is seen, rests while it is hidden, and runs when shown again", async (t) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  t.after(() => mock.timers.reset());
  const page = visiblePage();
  let runs = 0;
  pollWhileVisible(async () => (runs += 1), 1000, page);
  await pass(1000);
  await pass(1000);
  assert.equal(runs, 2);

  page.show(false);
  for (let round = 0; round < 5; round += 1) await pass(1000);
  assert.equal(runs, 2);

  page.show(true);
  await settle();
  assert.equal(runs, 3);
  await pass(1000);
  assert.equal(runs, 4);
});

test("a slow task is never run twice at once", async (t) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  t.after(() => mock.timers.reset());
  const page = visiblePage();
  let runs = 0;
  let finish;
  const task = () => {
    runs += 1;
    return new Promise((resolve) => (finish = resolve));
  };
  pollWhileVisible(task, 1000, page);
  await pass(1000);
  page.show(false);
  page.show(true);
  await pass(5000);
  assert.equal(runs, 1);
  finish();
  await settle();
  await pass(1000);
  assert.equal(runs, 2);
});

test("a drag scrolls near the edges, faster the nearer, and not in the middle", () => {
  const view = { left: 100, right: 500, top: 50, bottom: 350 };
  assert.deepEqual(scrollSpeed({ x: 300, y: 200 }, view), { left: 0, top: 0 });
  assert.ok(scrollSpeed({ x: 495, y: 200 }, view).left > scrollSpeed({ x: 475, y: 200 }, view).left);
  assert.ok(scrollSpeed({ x: 90, y: 360 }, view).left < 0);
  assert.ok(scrollSpeed({ x: 90, y: 360 }, view).top > 0);
  const far = scrollSpeed({ x: -9000, y: 9000 }, view);
  assert.ok(far.left > -12 && far.top < 12);
});
