/** Reservations and the policy as the calendar uses them: plain values made from the API's. */

import { DAY, HOUR, MINUTE } from "./timezone.js";

/**
 * @typedef {object} Reservation
 * @property {number} id
 * @property {string} title
 * @property {string} description
 * @property {string|null} project
 * @property {string} owner username
 * @property {boolean} isMine
 * @property {string[]} gpus UUIDs
 * @property {number} start instant
 * @property {number} end instant, not included
 * @property {boolean} isCancelled
 * @property {string} cancelReason
 */

/** @returns {Reservation} */
export function reservationFrom(json, username) {
  return {
    id: json.id,
    title: json.title ?? "",
    description: json.description ?? "",
    project: json.project ?? null,
    owner: json.owner,
    isMine: json.owner === username,
    gpus: json.gpus,
    start: Date.parse(json.starts_at),
    end: Date.parse(json.ends_at),
    isCancelled: json.state === "cancelled",
    cancelReason: json.cancel_reason ?? "",
  };
}

/** An instant as the API writes it: UTC with Z. */
export function toApi(instant) {
  return new Date(instant).toISOString();
}

/** Those of the API's fields that differ from the reservation; the order of GPUs does not matter. */
export function changedFields(reservation, fields) {
  const before = {
    ...reservation,
    starts_at: toApi(reservation.start),
    ends_at: toApi(reservation.end),
    gpus: [...reservation.gpus].sort(),
  };
  const plain = (value) => (Array.isArray(value) ? String([...value].sort()) : value);
  return Object.fromEntries(
    Object.entries(fields).filter(([name, value]) => plain(value) !== plain(before[name])),
  );
}

/** Told from the times, since a page that stays open grows older than the server's word. */
export function stateAt(reservation, now) {
  if (reservation.isCancelled) return "cancelled";
  if (now < reservation.start) return "upcoming";
  return now < reservation.end ? "running" : "finished";
}

export const STATE_NAMES = {
  upcoming: "Upcoming",
  running: "Running",
  finished: "Over",
  cancelled: "Cancelled",
};

/**
 * What this person may do with the reservation now. Only for showing the right buttons and
 * handles: the server decides.
 */
export function allowedTo(reservation, user, now) {
  const state = stateAt(reservation, now);
  const isTheirs = reservation.isMine || user.is_staff;
  return {
    move: reservation.isMine && state === "upcoming",
    extend: reservation.isMine && (state === "upcoming" || state === "running"),
    edit: isTheirs && (state === "upcoming" || state === "running"),
    cancel: isTheirs && state === "upcoming",
    release: isTheirs && state === "running",
  };
}

/** Hues that stay clear of the blue of one's own blocks and of the red that means trouble. */
const HUES = [25, 45, 75, 100, 130, 155, 175, 190, 265, 285, 305, 325];

/** The same hue for the same name on every page and day. */
export function hueOf(name) {
  let hash = 2166136261; // FNV-1a
  for (const character of name) hash = Math.imul(hash ^ character.codePointAt(0), 16777619);
  return HUES[(hash >>> 0) % HUES.length];
}

/** Milliseconds of an ISO 8601 duration of days and below ("P8D", "PT30M"), null for null. */
export function durationFrom(text) {
  if (text === null || text === undefined) return null;
  const match = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/.exec(text);
  if (!match) throw new Error(`not a duration: ${text}`);
  const [days, hours, minutes, seconds] = match.slice(1).map((digits) => Number(digits ?? 0));
  return days * DAY + hours * HOUR + minutes * MINUTE + seconds * 1000;
}

/** Lengths in milliseconds; null is no limit (0 for the shortest). */
export function policyFrom(json) {
  return {
    minLength: durationFrom(json.min_length) ?? 0,
    maxLength: durationFrom(json.max_length),
    horizon: durationFrom(json.horizon),
    step: durationFrom(json.step),
  };
}
