import assert from "node:assert/strict";
import { test } from "node:test";

import {
  neighbour,
  rangeAround,
  rangeWith,
  ticks,
  tickStep,
  ZOOMS,
} from "../../static/js/calendar/ranges.js";
import { clock, DAY, HOUR, MINUTE, startOfDay } from "../../static/js/calendar/timezone.js";

const WARSAW = "Europe/Warsaw";
const at = (text) => Date.parse(text);
const zoomNamed = (name) => ZOOMS.find((zoom) => zoom.name === name);

for (const zoom of ZOOMS) {
  for (const moment of ["2026-12-01T12:34:56Z", "2026-10-25T00:30Z", "2026-03-29T01:00Z"]) {
    test(`the ${zoom.name} range holds its moment, ${moment}, and its neighbours touch it`, () => {
      const range = rangeAround(at(moment), zoom, WARSAW);
      assert.ok(range.start <= at(moment) && at(moment) < range.end);
      const next = neighbour(range, 1, zoom, WARSAW);
      assert.equal(next.start, range.end);
      assert.deepEqual(neighbour(next, -1, zoom, WARSAW), range);
    });
  }
}

test("a week with a change of the clocks has its real length", () => {
  const { start, end } = rangeAround(at("2026-10-22T12:00Z"), zoomNamed("week"), WARSAW);
  assert.equal(end - start, 7 * DAY + HOUR);
  assert.equal(clock(start, WARSAW), "00:00");
});

test("the page with a moment is found in both directions, and stays if it is the present one", () => {
  const zoom = zoomNamed("day");
  const range = rangeAround(at("2026-12-01T12:00Z"), zoom, WARSAW);
  assert.equal(rangeWith(at("2026-12-01T20:00Z"), range, zoom, WARSAW), range);
  for (const moment of ["2026-12-05T12:00Z", "2026-11-20T12:00Z"]) {
    const { start } = rangeWith(at(moment), range, zoom, WARSAW);
    assert.equal(start, startOfDay(at(moment), WARSAW));
  }
});

test("labels of ticks have room at every scale", () => {
  for (let hourWidth = 1; hourWidth < 400; hourWidth += 1) {
    const step = tickStep(hourWidth / HOUR);
    const isWide = (step / HOUR) * hourWidth >= (step < HOUR ? 46 : 26);
    assert.ok(isWide || step === DAY, String(hourWidth));
  }
});

test("ticks stand at round hours of the clock on the day it is set back, twice at 02", () => {
  const day = startOfDay(at("2026-10-25T12:00Z"), WARSAW);
  const range = { start: day, end: startOfDay(day, WARSAW, 1) };
  const hours = ticks(range, 2 * HOUR, WARSAW).map((instant) => clock(instant, WARSAW));
  assert.deepEqual(hours.slice(0, 5), ["00:00", "02:00", "02:00", "04:00", "06:00"]);
  assert.equal(hours.at(-1), "22:00");
});

test("ticks stay inside the range and keep their distance", () => {
  const range = { start: at("2026-12-01T10:10Z"), end: at("2026-12-01T12:00Z") };
  const found = ticks(range, 30 * MINUTE, WARSAW).map((instant) => clock(instant, WARSAW));
  assert.deepEqual(found, ["11:30", "12:00", "12:30"]);
});

test("every zoom snaps to a part of its ticks", () => {
  for (const { snap } of ZOOMS) assert.equal((DAY / snap) % 1, 0);
});
