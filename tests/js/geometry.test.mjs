import assert from "node:assert/strict";
import { test } from "node:test";

import { layOut, runs, scaleFor, Timeline } from "../../static/js/calendar/geometry.js";
import { HOUR } from "../../static/js/calendar/timezone.js";

const gpus = (...uuids) => uuids.map((uuid, index) => ({ uuid, index }));
const hosts = [
  { name: "a", gpus: gpus("a0", "a1", "a2") },
  { name: "b", gpus: gpus("b0", "b1") },
];
const layout = layOut(hosts, 10);
const range = { start: 0, end: 10 * HOUR };
const timeline = new Timeline(layout, range, 100 / HOUR);

test("every host has a row for its name above those of its GPUs", () => {
  assert.deepEqual(layout.rows.map(({ top }) => top), [10, 20, 30, 50, 60]);
  assert.deepEqual(layout.bands.map(({ top, height }) => [top, height]), [[0, 40], [40, 30]]);
  assert.equal(layout.height, 70);
});

for (const [y, row] of [[-50, 0], [0, 0], [10, 0], [19.9, 0], [20, 1], [39, 2], [40, 3], [55, 3], [69, 4], [500, 4]]) {
  test(`height ${y} belongs to row ${row}`, () => {
    assert.equal(timeline.cellAt(0, y).row, row);
  });
}

test("a place outside in time means the nearest moment of the range", () => {
  assert.equal(timeline.cellAt(-5, 0).instant, range.start);
  assert.equal(timeline.cellAt(150, 0).instant, 1.5 * HOUR);
  assert.equal(timeline.cellAt(5000, 0).instant, range.end);
});

test("the place of every cell leads back to that cell", () => {
  layout.rows.forEach((_, row) => {
    for (const hours of [0, 0.5, 3, 9.5]) {
      const [box] = timeline.rectangles([row], hours * HOUR, (hours + 0.5) * HOUR);
      const cell = timeline.cellAt(box.left + 1, box.top + 1);
      assert.deepEqual([cell.row, Math.floor(cell.instant / (HOUR / 2))], [row, hours * 2]);
    }
  });
});

test("neighbours on one host are one run; gaps and hosts part them", () => {
  assert.deepEqual(runs([2, 0, 1], layout.rows), [[0, 2]]);
  assert.deepEqual(runs([0, 2], layout.rows), [[0, 0], [2, 2]]);
  assert.deepEqual(runs([1, 2, 3, 4], layout.rows), [[1, 2], [3, 4]]);
  assert.deepEqual(runs([], layout.rows), []);
});

test("a reservation over three neighbours is one rectangle", () => {
  const [box, ...others] = timeline.rectangles([0, 1, 2], HOUR, 3 * HOUR);
  assert.deepEqual(others, []);
  assert.deepEqual([box.left, box.width, box.top, box.height], [100, 200, 10, 30]);
  assert.deepEqual([box.isCutLeft, box.isCutRight], [false, false]);
});

test("what reaches beyond the range is cut and says so", () => {
  const [box] = timeline.rectangles([3], -HOUR, 20 * HOUR);
  assert.deepEqual([box.left, box.width], [0, 1000]);
  assert.deepEqual([box.isCutLeft, box.isCutRight], [true, true]);
});

test("what only touches the range is not drawn", () => {
  assert.deepEqual(timeline.rectangles([0], -HOUR, 0), []);
  assert.deepEqual(timeline.rectangles([0], 10 * HOUR, 12 * HOUR), []);
});

test("the range fills the width until hours would get too narrow", () => {
  assert.equal(scaleFor(range, 1000, 6) * HOUR, 100);
  assert.equal(scaleFor(range, 10, 6) * HOUR, 6);
});
