/** The fixed parts of the timeline: head with days and hours, row heads, lines and shades. */

import { element, place } from "./dom.js";
import { tickStep, ticks } from "./ranges.js";
import { clock, dayName, daysIn, HOUR } from "./timezone.js";
import { gpuLabel, modelText } from "./wording.js";

const NARROW_DAY = 96; // px in which "Wed 30 Sep" does not fit

const GOOD_STATES = new Set(["ok", "partial"]);

/** @param {{state: string}} thing a host or GPU */
export function isAnswering({ state }) {
  return GOOD_STATES.has(state);
}

function stateText({ state, reason }) {
  return reason || state.replaceAll("_", " ");
}

/**
 * @param {import("./geometry.js").Timeline} geometry
 * @param {string} zone
 * @returns {{head: HTMLElement, body: HTMLElement, canvas: HTMLElement}}
 */
export function buildTimeline(geometry, zone) {
  const step = tickStep(geometry.scale);
  const instants = ticks(geometry.range, step, zone);
  const days = daysIn(geometry.range, zone);
  const canvas = element("div", "cal-canvas");
  place(canvas, { width: geometry.width, height: geometry.height });
  canvas.append(lines(geometry, instants, days), bands(geometry));
  const body = element("div", "cal-body", {}, labels(geometry.layout), canvas);
  return { head: head(geometry, instants, days, step, zone), body, canvas };
}

function head(geometry, instants, days, step, zone) {
  const axis = element("div", "cal-axis");
  place(axis, { width: geometry.width });
  for (const day of days) axis.append(dayHead(geometry, day, zone));
  for (const instant of instants) {
    const text = clock(instant, zone);
    const tick = element("span", "cal-tick", {}, step < HOUR ? text : text.slice(0, 2));
    place(tick, { left: geometry.leftOf(instant) });
    axis.append(tick);
  }
  const corner = element("div", "cal-corner");
  return element("div", "cal-head", { "aria-hidden": "true" }, corner, axis);
}

function dayHead(geometry, { start, end }, zone) {
  const left = Math.max(0, geometry.leftOf(start));
  const width = Math.min(geometry.width, geometry.leftOf(end)) - left;
  const hours = (end - start) / HOUR;
  const name = dayName(start, zone);
  const short = name.slice(0, name.lastIndexOf(" "));
  const label = element("span", "cal-day-name", {}, width < NARROW_DAY ? short : name);
  if (hours !== 24) label.append(element("small", "", {}, ` ${hours} h: the clocks change`));
  const day = element("div", "cal-day", {}, label);
  place(day, { left, width });
  return day;
}

/** Vertical lines are few, so they are elements and stay right after a change of the clocks. */
function lines(geometry, instants, days) {
  const midnights = new Set(days.map(({ start }) => start));
  const layer = element("div", "cal-lines");
  for (const instant of instants) {
    const line = element("i", midnights.has(instant) ? "cal-line cal-midnight" : "cal-line");
    place(line, { left: geometry.leftOf(instant) });
    layer.append(line);
  }
  return layer;
}

function labels(layout) {
  const column = element("div", "cal-labels");
  for (const { host } of layout.bands) {
    const group = element("div", "cal-group", { "data-host": host.name });
    group.append(hostHead(host), ...host.gpus.map(gpuHead));
    column.append(group);
  }
  return column;
}

function hostHead(host) {
  const name = element("span", "cal-host-name", {}, host.name);
  return element("div", "cal-host", { title: host.name }, name);
}

function gpuHead(gpu) {
  const head = element("div", "cal-gpu", { "data-gpu": gpu.uuid });
  head.append(element("span", "cal-gpu-index", {}, gpuLabel(gpu)));
  head.append(element("span", "cal-gpu-model", {}, modelText(gpu)));
  return head;
}

/** Strips across the canvas: one behind each host's name, and a shade over what does not answer. */
function bands(geometry) {
  const layer = element("div", "cal-bands");
  for (const band of geometry.layout.bands) {
    const strip = element("div", "cal-strip");
    place(strip, { top: band.top });
    strip.append(element("span", "cal-strip-note"));
    layer.append(strip);
  }
  return layer;
}

/**
 * Show the states of hosts and GPUs: grey with the reason in words where they do not answer. Can
 * be called again when they have changed.
 */
export function showStates(body, layout) {
  const groups = body.querySelectorAll(".cal-group");
  const strips = body.querySelectorAll(".cal-strip");
  layout.bands.forEach(({ host }, number) => {
    groups[number].classList.toggle("is-away", !isAnswering(host));
    strips[number].firstChild.textContent = host.state === "ok" ? "" : stateText(host);
    host.gpus.forEach((gpu, index) => showGpuState(groups[number].children[index + 1], gpu));
  });
  shadeAwayRows(body.querySelector(".cal-bands"), layout);
}

function showGpuState(head, gpu) {
  const isAway = !isAnswering(gpu);
  head.classList.toggle("is-away", isAway);
  head.title = [gpuLabel(gpu), modelText(gpu), gpu.uuid, isAway ? stateText(gpu) : ""]
    .filter(Boolean)
    .join(" · ");
}

function shadeAwayRows(layer, layout) {
  for (const old of layer.querySelectorAll(".cal-away")) old.remove();
  for (const { gpu, host, top } of layout.rows) {
    if (isAnswering(gpu) && isAnswering(host)) continue;
    const shade = element("div", "cal-away");
    place(shade, { top });
    layer.append(shade);
  }
}
