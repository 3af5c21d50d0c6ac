import assert from "node:assert/strict";
import { test } from "node:test";

import {
  addDays,
  clock,
  dayName,
  daysIn,
  fromLocalInput,
  HOUR,
  instantsOf,
  offsetName,
  startOfDay,
  startOfWeek,
  toDateInput,
  toLocalInput,
} from "../../static/js/calendar/timezone.js";

const at = (text) => Date.parse(text);
const WARSAW = "Europe/Warsaw";

test("a local time stands for one instant as a rule", () => {
  const local = { year: 2026, month: 12, day: 1, hour: 13, minute: 30 };
  assert.deepEqual(instantsOf(local, WARSAW), [at("2026-12-01T12:30Z")]);
});

test("a local time that comes twice stands for two instants, earlier first", () => {
  const local = { year: 2026, month: 10, day: 25, hour: 2, minute: 30 };
  const expected = [at("2026-10-25T00:30Z"), at("2026-10-25T01:30Z")];
  assert.deepEqual(instantsOf(local, WARSAW), expected);
});

test("a local time that the clocks skip stands for none", () => {
  const local = { year: 2026, month: 3, day: 29, hour: 2, minute: 30 };
  assert.deepEqual(instantsOf(local, WARSAW), []);
});

for (const [zone, day, hours] of [
  [WARSAW, "2026-10-25T12:00Z", 25],
  [WARSAW, "2026-03-29T12:00Z", 23],
  ["America/New_York", "2027-03-14T12:00Z", 23],
  ["Australia/Lord_Howe", "2026-10-04T03:00Z", 23.5],
  ["Asia/Kathmandu", "2026-10-25T12:00Z", 24],
  ["UTC", "2026-10-25T12:00Z", 24],
]) {
  test(`a day in ${zone} at ${day} has ${hours} hours`, () => {
    const length = startOfDay(at(day), zone, 1) - startOfDay(at(day), zone);
    assert.equal(length / HOUR, hours);
  });
}

test("a day whose midnight is skipped begins at the first moment it has", () => {
  // In Cairo the clocks went from 00:00 to 01:00 on 24 April 2026.
  const start = startOfDay(at("2026-04-24T12:00Z"), "Africa/Cairo");
  assert.equal(clock(start, "Africa/Cairo"), "01:00");
  assert.equal(clock(start - 1, "Africa/Cairo"), "23:59");
});

test("weeks begin on Monday, on a Sunday and across a change of the clocks too", () => {
  const expected = at("2026-10-18T22:00Z");
  assert.equal(startOfWeek(at("2026-10-25T20:00Z"), WARSAW), expected);
  assert.equal(startOfWeek(expected, WARSAW), expected);
});

test("the same time some days later is by the clock, not by hours", () => {
  const before = at("2026-10-24T10:00Z");
  assert.equal(clock(addDays(before, 1, WARSAW), WARSAW), clock(before, WARSAW));
  assert.equal(addDays(before, 1, WARSAW) - before, 25 * HOUR);
});

test("the days of a range cover it without a gap", () => {
  const days = daysIn({ start: at("2026-10-24T10:00Z"), end: at("2026-10-26T10:00Z") }, WARSAW);
  assert.deepEqual(
    days.map(({ start }) => dayName(start, WARSAW)),
    ["Sat 24 Oct", "Sun 25 Oct", "Mon 26 Oct"],
  );
  assert.ok(days.every((day, index) => index === 0 || day.start === days[index - 1].end));
});

for (const zone of [WARSAW, "Asia/Kathmandu", "America/St_Johns", "Pacific/Auckland", "UTC"]) {
  test(`form fields come back as the same instant in ${zone}, every half hour of a year`, () => {
    const start = at("2026-01-01T00:00Z");
    for (let instant = start; instant < start + 366 * 24 * HOUR; instant += HOUR / 2) {
      const back = instantsOf(fromLocalInput(toLocalInput(instant, zone)), zone);
      assert.ok(back.includes(instant), toLocalInput(instant, zone));
    }
  });
}

for (const text of ["", "2026", "2026-12-01T", "soon", "2026-12-01 10:00"]) {
  test(`"${text}" is no local time`, () => assert.equal(fromLocalInput(text), null));
}

test("a date alone means its midnight", () => {
  const local = fromLocalInput("2026-12-01");
  assert.equal(toDateInput(instantsOf(local, WARSAW)[0], WARSAW), "2026-12-01");
  assert.equal(local.hour, 0);
});

for (const [zone, name] of [
  [WARSAW, "UTC+1"],
  ["Asia/Kathmandu", "UTC+5:45"],
  ["America/St_Johns", "UTC−3:30"],
  ["UTC", "UTC"],
]) {
  test(`the offset of ${zone} in winter is ${name}`, () => {
    assert.equal(offsetName(at("2026-12-01T00:00Z"), zone), name);
  });
}
