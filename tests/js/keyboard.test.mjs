import assert from "node:assert/strict";
import { test } from "node:test";

import { cellAfter, commandFor } from "../../static/js/calendar/keyboard.js";
import { HOUR, MINUTE } from "../../static/js/calendar/timezone.js";

const key = (name, held = {}) => commandFor({ key: name, ...held });
const [a, b] = [{ name: "a" }, { name: "b" }];
const rows = [a, a, a, b, b].map((host) => ({ host }));
const start = Date.parse("2026-10-24T10:00Z");
const surroundings = { rows, snap: 30 * MINUTE, zone: "Europe/Warsaw", nowCell: start - HOUR };
const after = (row, command) => cellAfter({ row, instant: start }, command, surroundings);

test("keys that belong to the browser are left to it", () => {
  for (const name of ["Tab", "a", "F5"]) assert.equal(key(name), null);
  assert.equal(key("ArrowLeft", { altKey: true }), null);
  assert.equal(key("ArrowLeft", { metaKey: true }), null);
});

test("arrows move by a slot and by a GPU, and stop at the first and last GPU", () => {
  assert.deepEqual(after(1, key("ArrowRight")), { row: 1, instant: start + 30 * MINUTE });
  assert.deepEqual(after(1, key("ArrowLeft")), { row: 1, instant: start - 30 * MINUTE });
  assert.equal(after(1, key("ArrowDown")).row, 2);
  assert.equal(after(0, key("ArrowUp")).row, 0);
  assert.equal(after(4, key("ArrowDown")).row, 4);
});

test("with Ctrl the cursor moves to the same time of the next day, clocks changed or not", () => {
  const { instant } = after(0, key("ArrowRight", { ctrlKey: true }));
  assert.equal(instant - start, 25 * HOUR);
});

for (const [row, name, expected] of [
  [0, "PageDown", 3],
  [2, "PageDown", 3],
  [3, "PageDown", 4],
  [4, "PageUp", 3],
  [3, "PageUp", 0],
  [2, "PageUp", 0],
  [0, "PageUp", 0],
]) {
  test(`${name} leads from row ${row} to row ${expected}`, () => {
    assert.equal(after(row, key(name)).row, expected);
  });
}

test("Home leads to now", () => assert.equal(after(2, key("Home")).instant, start - HOUR));

test("Shift extends whatever moves", () => {
  for (const name of ["ArrowLeft", "ArrowDown", "PageDown", "Home"]) {
    assert.equal(key(name).extends ?? false, false);
    assert.equal(key(name, { shiftKey: true }).extends, true);
  }
});

test("Enter, Space and Escape have their meanings", () => {
  assert.deepEqual(key("Enter"), { type: "enter" });
  assert.deepEqual(key(" "), { type: "enter" });
  assert.deepEqual(key("Escape"), { type: "clear" });
});
