/**
 * What a gesture claims (rows and a span of time), and what would stand against it. Pure: instants
 * and row numbers in, plain values out. All of it is advice to the person; the server decides.
 */

import { MINUTE } from "./timezone.js";
import { gpuName, lengthText, momentText } from "./wording.js";

/**
 * @typedef {object} Claim
 * @property {number[]} rows row numbers, in order
 * @property {number} start
 * @property {number} end
 * @property {boolean} startsNow begins at the moment of booking instead of at `start`
 *
 * @typedef {object} Grid
 * @property {number} origin an instant on a line of the grid
 * @property {number} snap distance of its lines
 * @property {number} now
 * @property {number} minLength
 */

export function floorTo(instant, { origin, snap }) {
  return origin + Math.floor((instant - origin) / snap) * snap;
}

export function ceilTo(instant, { origin, snap }) {
  return origin + Math.ceil((instant - origin) / snap) * snap;
}

function rowsBetween(a, b) {
  const [first, last] = [Math.min(a, b), Math.max(a, b)];
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

/**
 * The claim of a drag from one cell `{row, instant}` to another: every row between them, and all
 * slots touched. It grows to the shortest length that can be booked; in the slot that contains
 * now it starts now, because the past cannot be booked.
 *
 * @returns {Claim}
 */
export function claimBetween(anchor, focus, grid) {
  const start = floorTo(Math.min(anchor.instant, focus.instant), grid);
  const touched = ceilTo(Math.max(anchor.instant, focus.instant), grid);
  const rows = rowsBetween(anchor.row, focus.row);
  return { rows, ...spanFrom(start, Math.max(touched, start + grid.snap), grid) };
}

function spanFrom(start, end, grid) {
  const startsNow = start < grid.now && grid.now < start + grid.snap;
  const from = startsNow ? grid.now : start;
  const least = startsNow ? ceilTo(from + grid.minLength, grid) : from + grid.minLength;
  return { start: from, end: Math.max(end, least), startsNow };
}

/** The claim of the cells between two cursor cells, both included. */
export function claimOfCells(anchor, cursor, grid) {
  const last = Math.max(anchor.instant, cursor.instant);
  const first = Math.min(anchor.instant, cursor.instant);
  return {
    rows: rowsBetween(anchor.row, cursor.row),
    ...spanFrom(floorTo(first, grid), floorTo(last, grid) + grid.snap, grid),
  };
}

/**
 * A reservation moved by a drag, as one piece: neither its length nor the pattern of its rows
 * changes, and it stops at the first and last row.
 *
 * @param {{rows: number[], start: number, end: number}} from
 * @param {{row: number, instant: number}} anchor where it was taken
 * @param {{row: number, instant: number}} focus where it is now
 * @param {number} rowCount
 */
export function movedClaim(from, anchor, focus, { snap, rowCount }) {
  const shift = Math.round((focus.instant - anchor.instant) / snap) * snap;
  const wanted = focus.row - anchor.row;
  const rowShift = Math.max(-Math.min(...from.rows), Math.min(rowCount - 1 - Math.max(...from.rows), wanted));
  return {
    rows: from.rows.map((row) => row + rowShift),
    start: from.start + shift,
    end: from.end + shift,
    startsNow: false,
  };
}

/** A reservation whose start or end was dragged; it keeps at least the shortest length. */
export function resizedClaim(from, edge, instant, grid) {
  const at = grid.origin + Math.round((instant - grid.origin) / grid.snap) * grid.snap;
  if (edge === "start") {
    return { ...from, start: Math.min(at, from.end - grid.minLength), startsNow: false };
  }
  return { ...from, end: Math.max(at, from.start + grid.minLength), startsNow: false };
}

/** Reservations that hold one of the GPUs at a moment of [start, end). */
export function conflictsOf({ gpus, start, end }, reservations, ignoredId = null) {
  const wanted = new Set(gpus);
  return reservations.filter(
    (other) =>
      !other.isCancelled &&
      other.id !== ignoredId &&
      other.start < end &&
      other.end > start &&
      other.gpus.some((uuid) => wanted.has(uuid)),
  );
}

/**
 * Sentences that say why the wish would be refused, most telling first; none when it looks free.
 *
 * @param {{gpus: string[], start: number, end: number, startsNow?: boolean}} wish
 * @param {object} known
 * @param {import("./model.js").Reservation[]} known.reservations
 * @param {Map<string, {gpu: object, host: object}>} known.gpus by UUID
 * @param {number} known.now
 * @param {string} known.zone
 * @param {{minLength: number, maxLength: number|null, horizon: number|null}} known.policy
 * @param {import("./model.js").Reservation|null} [known.changed] the reservation being changed
 */
export function problemsOf(wish, known) {
  return [...timeProblems(wish, known), ...conflictSentences(wish, known)];
}

function timeProblems({ start, end, startsNow }, { now, policy, changed = null }) {
  if (end <= start) return ["It ends before it starts."];
  const found = [];
  const keepsStart = changed !== null && changed.start === start;
  if (!keepsStart && !startsNow && start < now - MINUTE) found.push("It starts in the past.");
  if (end <= now) found.push("It ends in the past.");
  const length = end - start;
  const { minLength, maxLength, horizon } = policy;
  if (length < minLength) found.push(`It is shorter than ${lengthText(minLength)}.`);
  if (maxLength !== null && length > maxLength) {
    found.push(`It is longer than ${lengthText(maxLength)}.`);
  }
  if (horizon !== null && end > now + horizon) {
    found.push(`It lies more than ${lengthText(horizon)} ahead.`);
  }
  return found;
}

function conflictSentences(wish, { reservations, gpus, zone, changed = null }) {
  const wanted = new Set(wish.gpus);
  return conflictsOf(wish, reservations, changed?.id ?? null).map((other) => {
    const shared = other.gpus.filter((uuid) => wanted.has(uuid) && gpus.has(uuid));
    const names = shared.map((uuid) => gpuName(gpus.get(uuid)));
    const more = names.length > 1 ? ` and ${names.length - 1} more` : "";
    const holder = other.isMine ? "you" : other.owner;
    const verb = names.length > 1 ? "are" : "is";
    return `${names[0]}${more} ${verb} taken by ${holder} until ${momentText(other.end, zone)}.`;
  });
}

/** The UUIDs of a claim's rows. */
export function gpusOf(claim, rows) {
  return claim.rows.map((number) => rows[number].gpu.uuid);
}
