import assert from "node:assert/strict";
import { test } from "node:test";

import {
  allowedTo,
  changedFields,
  durationFrom,
  hueOf,
  policyFrom,
  reservationFrom,
  stateAt,
} from "../../static/js/calendar/model.js";
import { DAY, HOUR, MINUTE } from "../../static/js/calendar/timezone.js";
import {
  gpuListText,
  gpuName,
  lengthText,
  modelText,
  periodText,
  spanText,
} from "../../static/js/calendar/wording.js";

const json = {
  id: 12,
  title: "Training",
  description: "",
  project: null,
  owner: "alice",
  gpus: ["a1", "a0"],
  starts_at: "2026-12-01T10:00:00.000000Z",
  ends_at: "2026-12-01T12:00:00.000000Z",
  state: "upcoming",
  cancel_reason: null,
  usage: null,
};
const at = (text) => Date.parse(text);
const mine = reservationFrom(json, "alice");

test("the API's reservation becomes the calendar's", () => {
  assert.equal(mine.start, at("2026-12-01T10:00Z"));
  assert.equal(mine.isMine, true);
  assert.equal(reservationFrom(json, "bob").isMine, false);
  assert.equal(reservationFrom({ ...json, state: "cancelled" }, "bob").isCancelled, true);
});

for (const [moment, state] of [
  ["2026-12-01T09:59:59Z", "upcoming"],
  ["2026-12-01T10:00:00Z", "running"],
  ["2026-12-01T11:59:59Z", "running"],
  ["2026-12-01T12:00:00Z", "finished"],
]) {
  test(`at ${moment} it is ${state}, and cancelled if it was`, () => {
    assert.equal(stateAt(mine, at(moment)), state);
    assert.equal(stateAt({ ...mine, isCancelled: true }, at(moment)), "cancelled");
  });
}

const truths = (can) => Object.keys(can).filter((name) => can[name]).sort();
const [person, staff] = [{ is_staff: false }, { is_staff: true }];
const others = reservationFrom(json, "bob");
for (const [name, reservation, user, moment, expected] of [
  ["its owner before", mine, person, "2026-12-01T09:00Z", ["cancel", "edit", "extend", "move"]],
  ["its owner during", mine, person, "2026-12-01T11:00Z", ["edit", "extend", "release"]],
  ["its owner after", mine, person, "2026-12-01T13:00Z", []],
  ["another", others, person, "2026-12-01T09:00Z", []],
  ["an administrator before", others, staff, "2026-12-01T09:00Z", ["cancel", "edit"]],
  ["an administrator during", others, staff, "2026-12-01T11:00Z", ["edit", "release"]],
]) {
  test(`${name} may: ${expected.join(", ") || "nothing"}`, () => {
    assert.deepEqual(truths(allowedTo(reservation, user, at(moment))), expected);
  });
}

test("only what differs is sent, and the order of GPUs is no difference", () => {
  const same = { title: "Training", gpus: ["a0", "a1"], starts_at: "2026-12-01T10:00:00.000Z" };
  assert.deepEqual(changedFields(mine, same), {});
  const moved = { ...same, gpus: ["a0", "a2"], title: "Tuning" };
  assert.deepEqual(changedFields(mine, moved), { gpus: ["a0", "a2"], title: "Tuning" });
});

for (const [text, length] of [
  ["PT30M", 30 * MINUTE],
  ["P8D", 8 * DAY],
  ["P1DT12H", 36 * HOUR],
  ["P0DT00H05M00S", 5 * MINUTE],
  [null, null],
]) {
  test(`the duration ${text} is ${length} ms`, () => assert.equal(durationFrom(text), length));
}

test("what is no duration is an error, not a number", () => {
  for (const text of ["8 days", "", "P1Y"]) assert.throws(() => durationFrom(text));
});

test("a policy without limits has none", () => {
  const none = { min_length: null, max_length: null, horizon: null, step: null };
  assert.deepEqual(policyFrom(none), { minLength: 0, maxLength: null, horizon: null, step: null });
});

test("a name has one hue", () => {
  assert.equal(hueOf("carol"), hueOf("carol"));
  const hues = new Set(["bob", "carol", "dave", "erin", "frank", "grace"].map(hueOf));
  assert.ok(hues.size > 2);
});

const HOST = { name: "gpu01" };
const row = (index, uuid = `GPU-${index}`) => ({ host: HOST, gpu: { index, uuid } });

test("GPUs are named by their number, or by their UUID where they have none", () => {
  assert.equal(gpuName(row(3)), "gpu01 GPU 3");
  assert.equal(gpuName(row(null, "GPU-12345678-0000")), "gpu01 GPU-12345678");
});

test("lists of GPUs join neighbours and keep hosts apart", () => {
  const rows = [row(0), row(1), row(2), row(6), { ...row(1), host: { name: "gpu02" } }];
  assert.equal(gpuListText(rows), "gpu01 GPU 0–2, 6; gpu02 GPU 1");
  assert.equal(gpuListText([row(4), row(null, "GPU-12345678-0")]), "gpu01 GPU 4, GPU-12345678");
});

for (const [name, memory, text] of [
  ["NVIDIA A100-SXM4-40GB", 40960, "A100-SXM4-40GB"],
  ["NVIDIA GeForce RTX 3090", 24576, "RTX 3090 24 GiB"],
  ["NVIDIA H100", null, "H100"],
]) {
  test(`${name} is shown as ${text}`, () => {
    assert.equal(modelText({ name, memory_total_mib: memory }), text);
  });
}

const span = (from, to, zone = "Europe/Warsaw") => spanText(at(from), at(to), zone);
for (const [from, to, text] of [
  ["2026-12-01T12:00Z", "2026-12-01T19:00Z", "Tue 1 Dec 13:00–20:00"],
  ["2026-12-01T12:00Z", "2026-12-01T23:00Z", "Tue 1 Dec 13:00–24:00"],
  ["2026-12-01T12:00Z", "2026-12-02T01:00Z", "Tue 1 Dec 13:00 – Wed 2 Dec 02:00"],
  ["2026-10-24T23:30Z", "2026-10-25T01:30Z", "Sun 25 Oct 01:30–02:30 (clocks change)"],
]) {
  test(`the span ${from}/${to} reads ${text}`, () => assert.equal(span(from, to), text));
}

test("a period names its first and last day", () => {
  const day = { start: at("2026-12-01T00:00Z"), end: at("2026-12-02T00:00Z") };
  assert.equal(periodText(day, "UTC"), "Tue 1 Dec 2026");
  const days = { ...day, end: at("2026-12-04T00:00Z") };
  assert.equal(periodText(days, "UTC"), "Tue 1 Dec – Thu 3 Dec 2026");
});

for (const [length, text] of [
  [30 * MINUTE, "30 min"],
  [26.5 * HOUR, "1 d 2 h 30 min"],
  [8 * DAY, "8 d"],
  [1000, "under a minute"],
]) {
  test(`${length} ms read ${text}`, () => assert.equal(lengthText(length), text));
}
