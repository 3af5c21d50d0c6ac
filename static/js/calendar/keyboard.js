/** The calendar by keyboard: what a key means, and where it takes the cursor. */

import { addDays } from "./timezone.js";

/**
 * @typedef {{row: number, instant: number}} Cell one slot of one GPU; instant is its start
 * @typedef {{type: "move", rows?: number, slots?: number, days?: number, hosts?: number,
 *   now?: boolean, extends: boolean} | {type: "enter"} | {type: "clear"}} Command
 */

const STEPS = {
  ArrowLeft: { slots: -1 },
  ArrowRight: { slots: 1 },
  ArrowUp: { rows: -1 },
  ArrowDown: { rows: 1 },
  PageUp: { hosts: -1 },
  PageDown: { hosts: 1 },
};
const DAY_STEPS = { ArrowLeft: { days: -1 }, ArrowRight: { days: 1 } };

/** @returns {Command|null} null for keys that belong to the browser */
export function commandFor({ key, shiftKey, ctrlKey, metaKey, altKey }) {
  if (altKey || metaKey) return null;
  if (key === "Enter" || key === " ") return { type: "enter" };
  if (key === "Escape") return { type: "clear" };
  if (key === "Home") return { type: "move", now: true, extends: shiftKey };
  const step = ctrlKey ? (DAY_STEPS[key] ?? STEPS[key]) : STEPS[key];
  return step ? { type: "move", ...step, extends: shiftKey } : null;
}

/**
 * The cell a move leads to. Rows stop at the first and last; time has no end, the calendar turns
 * its page instead.
 *
 * @param {Cell} cell
 * @param {Command} command
 * @param {{rows: object[], snap: number, zone: string, nowCell: number}} surroundings nowCell: the
 *   instant at which the slot with now begins
 */
export function cellAfter(cell, command, { rows, snap, zone, nowCell }) {
  const { rows: down = 0, slots = 0, days = 0, hosts = 0 } = command;
  const row = hosts ? hostJump(cell.row, hosts, rows) : cell.row + down;
  const start = command.now ? nowCell : cell.instant + slots * snap;
  return {
    row: Math.max(0, Math.min(rows.length - 1, row)),
    instant: days ? addDays(start, days, zone) : start,
  };
}

/** The first row of the next host; back: of this host, or of the one before when already there. */
function hostJump(row, direction, rows) {
  if (direction > 0) {
    const next = rows.findIndex((other, number) => number > row && other.host !== rows[row].host);
    return next === -1 ? rows.length - 1 : next;
  }
  const before = Math.max(0, row - 1);
  return rows.findIndex((other) => other.host === rows[before].host);
}
