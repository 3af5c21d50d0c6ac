/** The calendar's sentences about times and GPUs. */

import { clock, DAY, dayName, HOUR, localParts, MINUTE, offsetAt, startOfDay } from "./timezone.js";

/** "1 GPU", "3 GPUs" */
export function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** "2 d 3 h 30 min"; lengths below a minute are "under a minute". */
export function lengthText(length) {
  const parts = [
    [Math.floor(length / DAY), "d"],
    [Math.floor((length % DAY) / HOUR), "h"],
    [Math.floor((length % HOUR) / MINUTE), "min"],
  ];
  const text = parts.filter(([number]) => number > 0).map((part) => part.join(" "));
  return text.join(" ") || "under a minute";
}

/** "Mon 30 Nov 13:00–20:00" or "Mon 30 Nov 13:00 – Tue 1 Dec 02:00", by the zone's clock. */
export function spanText(start, end, zone) {
  const from = `${dayName(start, zone)} ${clock(start, zone)}`;
  const changes = offsetAt(start, zone) === offsetAt(end, zone) ? "" : " (clocks change)";
  const midnight = startOfDay(start, zone, 1);
  if (end < midnight) return `${from}–${clock(end, zone)}${changes}`;
  if (end === midnight) return `${from}–24:00${changes}`;
  return `${from} – ${dayName(end, zone)} ${clock(end, zone)}${changes}`;
}

/** "Mon 30 Nov 13:00" */
export function momentText(instant, zone) {
  return `${dayName(instant, zone)} ${clock(instant, zone)}`;
}

/** What a range of the calendar shows: "Mon 30 Nov – Wed 2 Dec 2026". */
export function periodText({ start, end }, zone) {
  const last = end - 1;
  const { year } = localParts(last, zone);
  const [from, to] = [dayName(start, zone), dayName(last, zone)];
  return from === to ? `${from} ${year}` : `${from} – ${to} ${year}`;
}

/** "GPU 3", or the beginning of its UUID where the host gave it no number. */
export function gpuLabel({ index, uuid }) {
  return index === null ? uuid.slice(0, 12) : `GPU ${index}`;
}

/** "gpu01 GPU 3" */
export function gpuName({ gpu, host }) {
  return `${host.name} ${gpuLabel(gpu)}`;
}

/** "NVIDIA A100-SXM4-40GB", 40960 → "A100-SXM4-40GB"; adds the memory where the name lacks it. */
export function modelText({ name, memory_total_mib: memory }) {
  const model = (name || "").replace(/^NVIDIA\s+/i, "").replace(/^GeForce\s+/i, "");
  if (!memory || /\d\s*GB/i.test(model)) return model;
  return `${model} ${Math.round(memory / 1024)} GiB`.trim();
}

/**
 * GPUs by host in row order: "gpu01 GPU 0–3, 6; gpu02 GPU 1".
 *
 * @param {{gpu: object, host: object}[]} rows
 */
export function gpuListText(rows) {
  const hosts = new Map();
  for (const { gpu, host } of rows) {
    if (!hosts.has(host.name)) hosts.set(host.name, []);
    hosts.get(host.name).push(gpu);
  }
  return [...hosts].map(([name, gpus]) => `${name} ${gpusText(gpus)}`).join("; ");
}

function gpusText(gpus) {
  const numbered = gpus.filter(({ index }) => index !== null).map(({ index }) => index);
  const others = gpus.filter(({ index }) => index === null).map(gpuLabel);
  return [...(numbered.length ? [`GPU ${indexText(numbered)}`] : []), ...others].join(", ");
}

function indexText(indexes) {
  const runs = [];
  for (const index of [...indexes].sort((a, b) => a - b)) {
    const run = runs.at(-1);
    if (run && run[1] === index - 1) run[1] = index;
    else runs.push([index, index]);
  }
  return runs.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(", ");
}
