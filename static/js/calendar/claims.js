/** What is selected or being dragged: shown with what stands against it, then booked or refused. */

import { ceilTo, gpusOf } from "./selection.js";
import { HOUR } from "./timezone.js";
import { count, lengthText, spanText } from "./wording.js";

export class Claims {
  #shown = null;
  #isRefused = false;

  /** @param {import("./calendar.js").Calendar} calendar */
  constructor(calendar) {
    this.calendar = calendar;
  }

  get isShown() {
    return this.#shown !== null;
  }

  /**
   * Draw a claim with what stands against it.
   *
   * @param {import("./selection.js").Claim} claim
   * @param {{changed?: object|null, at?: {x: number, y: number}|null}} [options] changed: the
   *   reservation that is moved; at: the pointer
   * @returns {string[]} the problems
   */
  show(claim, { changed = null, at = null } = {}) {
    const { calendar } = this;
    const problems = calendar.problems(this.#wishOf(claim), changed);
    this.#draw(claim, problems.length > 0);
    const { rows, start, end } = claim;
    const span = `${spanText(start, end, calendar.zone)} · ${lengthText(end - start)}`;
    const lines = [count(rows.length, "GPU"), span];
    calendar.tip.show(lines, at ?? this.#belowSelection(), problems);
    return problems;
  }

  #draw(claim, isRefused) {
    this.#shown = claim;
    this.#isRefused = isRefused;
    this.redraw();
  }

  /** Also after the grid was drawn anew. */
  redraw() {
    this.calendar.drawing.drawSelection(this.#shown, this.#isRefused);
  }

  #wishOf({ rows, start, end, startsNow }) {
    return { gpus: gpusOf({ rows }, this.calendar.geometry.layout.rows), start, end, startsNow };
  }

  #belowSelection() {
    const { selection } = this.calendar.drawing;
    const view = this.calendar.drawing.viewport();
    const box = selection.lastChild?.getBoundingClientRect() ?? view;
    return {
      x: Math.max(view.left, Math.min(box.left, view.right)),
      y: Math.max(view.top, Math.min(box.bottom, view.bottom)),
    };
  }

  clear() {
    this.#draw(null, false);
    this.calendar.tip.hide();
    this.calendar.keyboard.forgetSelection();
  }

  refuse(problems) {
    this.clear();
    this.calendar.notice.showRefusal(problems.join(" "));
  }

  bookOrRefuse(claim) {
    const problems = this.calendar.problems(this.#wishOf(claim));
    if (problems.length) this.refuse(problems);
    else this.book(claim);
  }

  /** Open the form with the claim; it stays drawn behind until the form is closed. */
  book(claim) {
    this.#draw(claim, false);
    this.calendar.tip.hide();
    this.calendar.booking.open(this.#wishOf(claim));
  }

  /** Open the form with no GPU: an hour from now, or a little more. */
  bookFromNothing() {
    const { policy, range } = this.calendar;
    const start = this.calendar.now();
    const grid = { origin: range.start, snap: HOUR / 2 };
    const end = ceilTo(start + Math.max(HOUR, policy.minLength), grid);
    this.calendar.booking.open({ gpus: [], start, end, startsNow: true });
  }

  /** Move or resize a reservation to where the claim was dropped. */
  reschedule(reservation, claim) {
    this.clear();
    this.calendar.changes.reschedule(reservation, this.#wishOf(claim));
  }
}
