/** What the pointer's gestures mean in the calendar: select, move, resize, look, open. */

import { allowedTo } from "./model.js";
import { claimBetween, movedClaim, resizedClaim } from "./selection.js";

/** A `Target` of PointerGestures. */
export class Dragging {
  /** @param {import("./calendar.js").Calendar} calendar */
  constructor(calendar) {
    this.calendar = calendar;
  }

  /** Own blocks are moved or resized; everywhere else on the canvas a selection begins. */
  grab(event) {
    const { calendar } = this;
    if (!calendar.drawing.canvas.contains(event.target)) return null;
    const anchor = calendar.cellAt(event.clientX, event.clientY);
    const reservation = this.#reservationAt(event.target);
    const edge = event.target.closest(".cal-handle")?.dataset.edge;
    const can = reservation ? allowedTo(reservation, calendar.user, calendar.now()) : {};
    if (edge && can.extend) return { kind: edge, anchor, reservation };
    if (can.move && this.#isWhole(reservation)) return { kind: "move", anchor, reservation };
    return { kind: "select", anchor };
  }

  #reservationAt(node) {
    const block = node.closest(".cal-block");
    return block ? this.calendar.store.get(Number(block.dataset.reservation)) : null;
  }

  /** A booking with GPUs that the reader does not see cannot be dragged along with them. */
  #isWhole(reservation) {
    return this.calendar.drawing.rowsOf(reservation).length === reservation.gpus.length;
  }

  drag(gesture, x, y) {
    const { calendar } = this;
    calendar.quiet();
    const claim = this.#claim(gesture, calendar.cellAt(x, y));
    calendar.drawing.fade(gesture.reservation?.id ?? null);
    gesture.claim = claim;
    const at = { x, y, isAbove: gesture.isTouch };
    gesture.problems = calendar.claims.show(claim, { changed: gesture.reservation, at });
  }

  #claim({ kind, anchor, reservation }, focus) {
    const grid = this.calendar.grid();
    if (kind === "select") return claimBetween(anchor, focus, grid);
    const { start, end } = reservation;
    const from = { rows: this.calendar.drawing.rowsOf(reservation), start, end };
    if (kind === "move") {
      const rowCount = this.calendar.geometry.layout.rows.length;
      return movedClaim(from, anchor, focus, { snap: grid.snap, rowCount });
    }
    return resizedClaim(from, kind, focus.instant, grid);
  }

  drop({ kind, claim, problems, reservation }) {
    const { calendar } = this;
    calendar.drawing.fade(null);
    if (problems.length) calendar.claims.refuse(problems);
    else if (kind === "select") calendar.claims.book(claim);
    else calendar.claims.reschedule(reservation, claim);
  }

  abandon() {
    this.calendar.drawing.fade(null);
    this.calendar.claims.clear();
  }

  click(event) {
    const { calendar } = this;
    const reservation = this.#reservationAt(event.target);
    if (reservation) calendar.openDetails(reservation);
    else if (calendar.drawing.canvas.contains(event.target)) {
      calendar.keyboard.moveTo(calendar.cellAt(event.clientX, event.clientY));
    }
  }

  /** The shortest booking at that place. */
  doubleClick(event) {
    const { calendar } = this;
    if (this.#reservationAt(event.target) || !calendar.drawing.canvas.contains(event.target)) return;
    const cell = calendar.cellAt(event.clientX, event.clientY);
    calendar.claims.bookOrRefuse(claimBetween(cell, cell, calendar.grid()));
  }

  hover(event) {
    const { calendar } = this;
    const reservation = event.type === "pointerover" ? this.#reservationAt(event.target) : null;
    calendar.drawing.highlight(reservation?.id ?? null);
    if (calendar.claims.isShown) return;
    if (!reservation) calendar.tip.hide();
    else {
      const lines = calendar.drawing.describe(reservation, calendar.now());
      calendar.tip.show(lines, { x: event.clientX, y: event.clientY });
    }
  }

  viewport() {
    return this.calendar.drawing.viewport();
  }
}
