import assert from "node:assert/strict";
import { test } from "node:test";

import {
  claimBetween,
  claimOfCells,
  conflictsOf,
  movedClaim,
  problemsOf,
  resizedClaim,
} from "../../static/js/calendar/selection.js";
import { DAY, HOUR, MINUTE } from "../../static/js/calendar/timezone.js";

const MIDNIGHT = Date.parse("2026-12-01T00:00Z");
const hour = (number) => MIDNIGHT + number * HOUR;
const grid = { origin: MIDNIGHT, snap: 30 * MINUTE, now: hour(9.2), minLength: 30 * MINUTE };
const policy = { minLength: 30 * MINUTE, maxLength: 8 * DAY, horizon: 90 * DAY, step: 5 * MINUTE };

const booking = (fields) => ({
  id: 1,
  title: "Run",
  owner: "bob",
  isMine: false,
  isCancelled: false,
  gpus: ["a0"],
  start: hour(12),
  end: hour(14),
  ...fields,
});
const host = { name: "gpu01" };
const places = new Map(
  ["a0", "a1", "a2"].map((uuid, index) => [uuid, { host, gpu: { uuid, index } }]),
);
const known = (fields) => ({
  reservations: [],
  gpus: places,
  now: hour(9.2),
  zone: "UTC",
  policy,
  ...fields,
});
const wish = (fields) => ({ gpus: ["a0"], start: hour(12), end: hour(13), ...fields });

test("a drag claims all rows between and all slots touched, in whichever direction", () => {
  const [one, other] = [{ row: 1, instant: hour(12.2) }, { row: 3, instant: hour(14.1) }];
  const expected = { rows: [1, 2, 3], start: hour(12), end: hour(14.5), startsNow: false };
  assert.deepEqual(claimBetween(one, other, grid), expected);
  assert.deepEqual(claimBetween(other, one, grid), expected);
});

test("a drag within a slot claims that slot", () => {
  const cell = { row: 0, instant: hour(12) };
  const { start, end } = claimBetween(cell, cell, grid);
  assert.deepEqual([start, end], [hour(12), hour(12.5)]);
});

test("on a fine grid a claim grows to the shortest length", () => {
  const cell = { row: 0, instant: hour(12) };
  const { start, end } = claimBetween(cell, cell, { ...grid, snap: 5 * MINUTE });
  assert.deepEqual([start, end], [hour(12), hour(12.5)]);
});

test("in the slot with now a claim starts now and still has the shortest length", () => {
  const cell = { row: 0, instant: hour(9.4) };
  const claim = claimBetween(cell, cell, grid);
  assert.deepEqual(claim, { rows: [0], start: hour(9.2), end: hour(10), startsNow: true });
});

test("before the slot with now a claim keeps its start, so that it is seen to be past", () => {
  const claim = claimBetween({ row: 0, instant: hour(8) }, { row: 0, instant: hour(12) }, grid);
  assert.deepEqual([claim.start, claim.startsNow], [hour(8), false]);
});

test("cells claim both their ends", () => {
  const claim = claimOfCells({ row: 2, instant: hour(13) }, { row: 1, instant: hour(12) }, grid);
  assert.deepEqual(claim, { rows: [1, 2], start: hour(12), end: hour(13.5), startsNow: false });
});

test("a moved reservation keeps length and pattern and stops at the last row", () => {
  const from = { rows: [0, 2], start: hour(12), end: hour(14) };
  const anchor = { row: 0, instant: hour(12.1) };
  const options = { snap: grid.snap, rowCount: 4 };
  const near = movedClaim(from, anchor, { row: 1, instant: hour(13.2) }, options);
  assert.deepEqual([near.rows, near.start, near.end], [[1, 3], hour(13), hour(15)]);
  const far = movedClaim(from, anchor, { row: 3, instant: hour(10) }, options);
  assert.deepEqual([far.rows, far.start, far.end], [[1, 3], hour(10), hour(12)]);
});

test("a dragged end snaps and never passes the shortest length", () => {
  const from = { rows: [0], start: hour(12), end: hour(14) };
  assert.equal(resizedClaim(from, "end", hour(15.1), grid).end, hour(15));
  assert.equal(resizedClaim(from, "end", hour(1), grid).end, hour(12.5));
  assert.equal(resizedClaim(from, "start", hour(11.4), grid).start, hour(11.5));
  assert.equal(resizedClaim(from, "start", hour(20), grid).start, hour(13.5));
});

for (const [name, other, isConflict] of [
  ["another that overlaps", {}, true],
  ["one that only touches its end", { start: hour(13), end: hour(15) }, false],
  ["one that only touches its start", { start: hour(10), end: hour(12) }, false],
  ["one inside it", { start: hour(12.2), end: hour(12.4) }, true],
  ["a cancelled one", { isCancelled: true }, false],
  ["one on another GPU", { gpus: ["a1"] }, false],
  ["one that shares one of several GPUs", { gpus: ["a2", "a0"] }, true],
  ["itself", { id: 7 }, false],
]) {
  test(`a wish ${isConflict ? "conflicts" : "does not conflict"} with ${name}`, () => {
    assert.equal(conflictsOf(wish(), [booking(other)], 7).length, isConflict ? 1 : 0);
  });
}

test("a free wish has no problems", () => assert.deepEqual(problemsOf(wish(), known()), []));

for (const [name, fields, sentence] of [
  ["an end before the start", { end: hour(11) }, "It ends before it starts."],
  ["a start in the past", { start: hour(9), end: hour(12) }, "It starts in the past."],
  ["a short length", { end: hour(12.25) }, "It is shorter than 30 min."],
  ["a long length", { end: hour(12) + 9 * DAY }, "It is longer than 8 d."],
  [
    "a far end",
    { start: hour(12) + 90 * DAY, end: hour(13) + 90 * DAY },
    "It lies more than 90 d ahead.",
  ],
]) {
  test(`${name} is refused in words`, () => {
    assert.deepEqual(problemsOf(wish(fields), known()), [sentence]);
  });
}

test("starting now is not in the past, nor is a start less than a minute ago", () => {
  assert.deepEqual(problemsOf(wish({ start: hour(9), startsNow: true }), known()), []);
  assert.deepEqual(problemsOf(wish({ start: hour(9.2) - 30_000 }), known()), []);
});

test("a running reservation may keep its past start, but not end in the past", () => {
  const changed = booking({ start: hour(8), end: hour(12) });
  const options = known({ changed, reservations: [changed] });
  assert.deepEqual(problemsOf(wish({ start: hour(8), end: hour(13) }), options), []);
  const ended = problemsOf(wish({ start: hour(8), end: hour(9) }), options);
  assert.deepEqual(ended, ["It ends in the past."]);
});

test("limits that are not set limit nothing", () => {
  const free = { minLength: 0, maxLength: null, horizon: null, step: null };
  const far = wish({ start: hour(0) + 900 * DAY, end: hour(0) + 990 * DAY });
  assert.deepEqual(problemsOf(far, known({ policy: free })), []);
});

test("a conflict names GPU, holder and end", () => {
  const reservations = [booking({ gpus: ["a0", "a1"] })];
  const [one] = problemsOf(wish(), known({ reservations }));
  assert.equal(one, "gpu01 GPU 0 is taken by bob until Tue 1 Dec 14:00.");
  const [two] = problemsOf(wish({ gpus: ["a0", "a1"] }), known({ reservations }));
  assert.equal(two, "gpu01 GPU 0 and 1 more are taken by bob until Tue 1 Dec 14:00.");
});

test("one's own other booking is a conflict, too", () => {
  const reservations = [booking({ isMine: true })];
  assert.match(problemsOf(wish(), known({ reservations }))[0], /taken by you/);
});
