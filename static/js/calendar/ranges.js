/** Which stretch of time the calendar shows, and how finely. */

import { addDays, DAY, daysIn, HOUR, localParts, MINUTE, startOfDay, startOfWeek } from "./timezone.js";

/**
 * From near to far. `snap` is the grid of drags and of the keyboard's cells; `leastHourWidth`, in
 * pixels, is where the timeline stops to shrink and begins to scroll.
 */
export const ZOOMS = [
  { name: "6h", label: "6 h", hours: 6, snap: 5 * MINUTE, leastHourWidth: 60 },
  { name: "day", label: "Day", days: 1, snap: 30 * MINUTE, leastHourWidth: 24 },
  { name: "3days", label: "3 days", days: 3, snap: 30 * MINUTE, leastHourWidth: 12 },
  { name: "week", label: "Week", days: 7, snap: 30 * MINUTE, leastHourWidth: 6 },
  { name: "2weeks", label: "2 weeks", days: 14, snap: HOUR, leastHourWidth: 3.2 },
];

/** The range of the zoom that one means by "show me this moment". */
export function rangeAround(instant, zoom, zone) {
  if (zoom.hours) {
    // With an hour before it, to see what it follows.
    const { minute } = localParts(instant, zone);
    const hour = Math.floor(instant / MINUTE) * MINUTE - minute * MINUTE;
    return { start: hour - HOUR, end: hour + (zoom.hours - 1) * HOUR };
  }
  const start = zoom.days >= 7 ? startOfWeek(instant, zone) : startOfDay(instant, zone);
  return { start, end: startOfDay(start, zone, zoom.days) };
}

/** The range before (-1) or after (+1) the given one. */
export function neighbour(range, direction, zoom, zone) {
  if (zoom.hours) {
    const shift = direction * zoom.hours * HOUR;
    return { start: range.start + shift, end: range.end + shift };
  }
  const start = startOfDay(addDays(range.start, direction * zoom.days, zone), zone);
  return { start, end: startOfDay(start, zone, zoom.days) };
}

/** The range, or the one some pages on or back that holds the instant. */
export function rangeWith(instant, range, zoom, zone) {
  let found = range;
  while (instant >= found.end) found = neighbour(found, 1, zoom, zone);
  while (instant < found.start) found = neighbour(found, -1, zoom, zone);
  return found;
}

const TICK_STEPS = [15, 30, 60, 120, 180, 360, 720, 1440].map((minutes) => minutes * MINUTE);

/** The smallest distance of ticks whose labels ("06" or "06:30") do not touch. */
export function tickStep(pixelsPerMs) {
  const fits = (step) => step * pixelsPerMs >= (step < HOUR ? 46 : 26);
  return TICK_STEPS.find(fits) ?? DAY;
}

/**
 * Instants in the range at which the local clock shows a multiple of the step. Looked up by the
 * clock, not counted, so that they stay right after the clocks have changed.
 */
export function ticks(range, step, zone) {
  const found = [];
  for (const day of daysIn(range, zone)) {
    for (let at = day.start; at < day.end; at += Math.min(step, 30 * MINUTE)) {
      const { hour, minute } = localParts(at, zone);
      const isTick = at === day.start || ((hour * 60 + minute) * MINUTE) % step === 0;
      if (isTick && at >= range.start && at < range.end) found.push(at);
    }
  }
  return found;
}
