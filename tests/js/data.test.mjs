import assert from "node:assert/strict";
import { test } from "node:test";

import { ReservationStore } from "../../static/js/calendar/data.js";
import { refreshStates } from "../../static/js/calendar/states.js";
import { errorFrom } from "../../static/js/http.js";

const URL_ = "/api/v1/reservations/";
const range = { start: Date.parse("2026-12-01T00:00Z"), end: Date.parse("2026-12-02T00:00Z") };
const json = (id, fields = {}) => ({
  id,
  title: `Run ${id}`,
  owner: "alice",
  gpus: ["a0"],
  starts_at: "2026-12-01T10:00:00Z",
  ends_at: "2026-12-01T12:00:00Z",
  state: "upcoming",
  ...fields,
});

/** A store whose server answers with the given functions, one after another. */
function storeWith(...answers) {
  const asked = [];
  const fetch = async (url, options) => {
    asked.push([url, options]);
    return { date: null, ...(await answers.shift()()) };
  };
  return { asked, store: new ReservationStore({ url: URL_, username: "alice", fetch }) };
}

const page = (results, next = null) => () => ({ data: { count: results.length, next, results } });
const ids = (store) => store.in(range).map(({ id }) => id).sort();

test("all pages are read, from the reader's own address whatever the host in next", async () => {
  const next = "http://internal:8000/api/v1/reservations/?page=2&page_size=200";
  const { store, asked } = storeWith(page([json(1)], next), page([json(2)]));
  assert.equal(await store.load(range), true);
  assert.deepEqual(ids(store), [1, 2]);
  assert.equal(asked[1][0], `${URL_}?page=2&page_size=200`);
});

test("the range is asked for in UTC", async () => {
  const { store, asked } = storeWith(page([]));
  await store.load(range);
  const query = new URL(asked[0][0], "http://localhost").searchParams;
  assert.equal(query.get("starts_before"), "2026-12-02T00:00:00.000Z");
  assert.equal(query.get("ends_after"), "2026-12-01T00:00:00.000Z");
});

test("loading the same again is no change; something gone is one", async () => {
  const { store } = storeWith(page([json(1), json(2)]), page([json(1), json(2)]), page([json(2)]));
  assert.equal(await store.load(range), true);
  assert.equal(await store.load(range), false);
  assert.equal(await store.load(range), true);
  assert.deepEqual(ids(store), [2]);
});

test("loading one range leaves what is known of others", async () => {
  const later = json(9, { starts_at: "2026-12-05T10:00:00Z", ends_at: "2026-12-05T12:00:00Z" });
  const { store } = storeWith(() => ({ data: later }), page([]));
  await store.create({});
  await store.load(range);
  assert.equal(store.get(9).title, "Run 9");
});

test("an answer older than a booking made meanwhile does not remove the booking", async () => {
  let answerLoad;
  const slow = new Promise((resolve) => (answerLoad = resolve));
  const { store } = storeWith(() => slow, () => ({ data: json(7) }));
  const loading = store.load(range);
  await store.create({ title: "Run 7" });
  answerLoad(page([])());
  assert.equal(await loading, false);
  assert.deepEqual(ids(store), [7]);
});

test("an assumed change can be taken back", async () => {
  const { store } = storeWith(page([json(1)]));
  await store.load(range);
  const before = store.get(1);
  const takeBack = store.assume(1, { gpus: ["a1"] });
  assert.deepEqual(store.get(1).gpus, ["a1"]);
  takeBack();
  assert.deepEqual(store.get(1), before);
});

test("a change that fails leaves everything as it was", async () => {
  const { store } = storeWith(page([json(1)]), () => Promise.reject(new Error("refused")));
  await store.load(range);
  await assert.rejects(store.cancel(1), /refused/);
  assert.equal(store.get(1).isCancelled, false);
});

test("now is the server's when the reader's clock is wrong, the reader's when it is right", async () => {
  const anHour = 3_600_000;
  for (const [wrong, expected] of [[anHour, anHour], [0, 0]]) {
    const answer = () => ({ date: Date.now() + wrong, data: { next: null, results: [] } });
    const { store } = storeWith(answer);
    await store.load(range);
    assert.ok(Math.abs(store.now() - Date.now() - expected) < 2000);
  }
});

test("states of GPUs and hosts are taken over in place, and only news is news", async () => {
  const hosts = [{ name: "h", state: "ok", reason: "", gpus: [{ uuid: "a0", state: "ok", reason: "" }] }];
  const answers = {
    "/gpus/?page_size=200": [{ uuid: "a0", state: "lost", reason: "Fallen off the bus." }],
    "/hosts/?page_size=200": [{ name: "h", state: "unreachable", reason: "No answer." }],
  };
  const fetch = async (url) => ({ data: { next: null, results: answers[url] } });
  const urls = { gpus: "/gpus/", hosts: "/hosts/" };
  assert.equal(await refreshStates(urls, hosts, fetch), true);
  assert.equal(hosts[0].gpus[0].state, "lost");
  assert.equal(hosts[0].reason, "No answer.");
  assert.equal(await refreshStates(urls, hosts, fetch), false);
});

test("errors of the API keep code, fields and one sentence", () => {
  const field = errorFrom(400, { title: ["Too long."], gpus: { 0: ["Unknown."] }, code: "invalid" });
  assert.deepEqual(field.fields, { title: ["Too long."], gpus: ["Unknown."] });
  assert.equal(field.code, "invalid");
  const rule = errorFrom(409, { detail: "Taken by bob.", code: "conflict" });
  assert.deepEqual([rule.message, rule.code, rule.fields], ["Taken by bob.", "conflict", {}]);
  for (const body of [null, "<html>", {}]) {
    assert.equal(errorFrom(502, body).message, "The server answered with an error (502).");
  }
});
