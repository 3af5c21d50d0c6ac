/**
 * Clock and calendar in any IANA time zone. Instants are milliseconds since 1970 UTC.
 *
 * The calendar's axis is linear in instants; only labels, day borders and form fields know zones,
 * so a day on which the clocks change is drawn with its real length of 23 or 25 hours.
 */

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = [
  "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

const formatters = new Map();

/** Making a formatter is a thousand times dearer than using one. */
function formatter(zone) {
  if (!formatters.has(zone)) {
    formatters.set(
      zone,
      new Intl.DateTimeFormat("en-GB", {
        timeZone: zone,
        hourCycle: "h23",
        year: "numeric",
        month: "numeric",
        day: "numeric",
        hour: "numeric",
        minute: "numeric",
        second: "numeric",
      }),
    );
  }
  return formatters.get(zone);
}

/** @returns {{year: number, month: number, day: number, hour: number, minute: number, second: number}} month from 1 */
export function localParts(instant, zone) {
  const parts = {};
  for (const { type, value } of formatter(zone).formatToParts(instant)) {
    if (type !== "literal") parts[type] = Number(value);
  }
  return parts;
}

function asIfUtc({ year, month, day, hour = 0, minute = 0, second = 0 }) {
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

/** Milliseconds by which the zone's clock is ahead of UTC at the instant. */
export function offsetAt(instant, zone) {
  return asIfUtc(localParts(instant, zone)) - Math.floor(instant / 1000) * 1000;
}

/**
 * The instants at which the zone's clock shows the local time, earliest first: one as a rule, two
 * where the clock is set back, none where it is set forward over that time.
 */
export function instantsOf(local, zone) {
  const guess = asIfUtc(local);
  const offsets = new Set([offsetAt(guess - DAY, zone), offsetAt(guess + DAY, zone)]);
  return [...offsets]
    .map((offset) => guess - offset)
    .filter((instant) => guess - instant === offsetAt(instant, zone))
    .sort((a, b) => a - b);
}

/** The first instant at or after the local time: what a skipped 00:00 means as start of a day. */
function firstInstantOf(local, zone) {
  const guess = asIfUtc(local);
  return instantsOf(local, zone)[0] ?? guess - offsetAt(guess - DAY, zone);
}

/** Midnight of the instant's local day, or of the day so many days later. */
export function startOfDay(instant, zone, daysLater = 0) {
  const { year, month, day } = localParts(instant, zone);
  return firstInstantOf({ year, month, day: day + daysLater }, zone);
}

/** The same time by the clock so many days later (moved forward if that time is skipped). */
export function addDays(instant, days, zone) {
  const parts = localParts(instant, zone);
  return firstInstantOf({ ...parts, day: parts.day + days }, zone) + (instant % 1000);
}

function weekday({ year, month, day }) {
  return new Date(Date.UTC(year, month - 1, day)).getUTCDay();
}

/** Midnight of the Monday of the instant's local week. */
export function startOfWeek(instant, zone) {
  return startOfDay(instant, zone, -((weekday(localParts(instant, zone)) + 6) % 7));
}

/** The local days that share a moment with [start, end), each `{start, end}`, uncut. */
export function daysIn({ start, end }, zone) {
  const days = [];
  let at = startOfDay(start, zone);
  while (at < end) {
    const next = startOfDay(at, zone, 1);
    days.push({ start: at, end: next });
    at = next;
  }
  return days;
}

const two = (number) => String(number).padStart(2, "0");

/** "02:30" */
export function clock(instant, zone) {
  const { hour, minute } = localParts(instant, zone);
  return `${two(hour)}:${two(minute)}`;
}

/** "Mon 30 Nov" */
export function dayName(instant, zone) {
  const parts = localParts(instant, zone);
  return `${WEEKDAYS[weekday(parts)]} ${parts.day} ${MONTHS[parts.month - 1]}`;
}

/** "UTC+1", "UTC+5:45" */
export function offsetName(instant, zone) {
  const minutes = Math.round(offsetAt(instant, zone) / MINUTE);
  if (minutes === 0) return "UTC";
  const rest = Math.abs(minutes) % 60;
  const hours = Math.floor(Math.abs(minutes) / 60);
  return `UTC${minutes < 0 ? "−" : "+"}${hours}${rest ? `:${two(rest)}` : ""}`;
}

/** Value of an `<input type="datetime-local">`: "2026-10-25T02:30". */
export function toLocalInput(instant, zone) {
  return `${toDateInput(instant, zone)}T${clock(instant, zone)}`;
}

/** Value of an `<input type="date">`: "2026-10-25". */
export function toDateInput(instant, zone) {
  const { year, month, day } = localParts(instant, zone);
  return `${String(year).padStart(4, "0")}-${two(month)}-${two(day)}`;
}

/** The local time that such a field holds, or null when it is empty or incomplete. */
export function fromLocalInput(text) {
  const match = /^(\d{4,6})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?)?$/.exec(text);
  if (!match) return null;
  const [year, month, day, hour, minute, second] = match
    .slice(1)
    .map((digits) => Number(digits ?? 0));
  return { year, month, day, hour, minute, second };
}
