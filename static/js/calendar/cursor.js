/** The keyboard's cursor: one cell that arrow keys move, and the selection Shift spans from it. */

import { cellAfter, commandFor } from "./keyboard.js";
import { claimOfCells, conflictsOf, floorTo } from "./selection.js";
import { isAnswering } from "./timeline.js";
import { count, gpuName, lengthText, spanText } from "./wording.js";

export class KeyboardCursor {
  #cell = null;
  #anchor = null;

  /** @param {import("./calendar.js").Calendar} calendar @param {HTMLElement} scroller */
  constructor(calendar, scroller) {
    this.calendar = calendar;
    scroller.addEventListener("keydown", (event) => this.#key(event));
    scroller.addEventListener("focus", () => scroller.matches(":focus-visible") && this.#arrive());
    scroller.addEventListener("blur", () => this.#leave());
  }

  /** Put the cursor on the slot of a cell; ends a selection. */
  moveTo({ row, instant }) {
    this.calendar.claims.clear();
    this.#cell = { row, instant: floorTo(instant, this.calendar.grid()) };
    this.#show();
  }

  /** Draw it again after the grid was; a selection lasts. */
  redraw() {
    const hasFocus = document.activeElement === this.calendar.scroller;
    if (this.#cell && hasFocus) this.calendar.drawing.drawCursor(this.#cell, this.#slot);
  }

  /** The next Shift begins a new selection. */
  forgetSelection() {
    this.#anchor = null;
  }

  get #slot() {
    return this.calendar.grid().snap;
  }

  get #nowCell() {
    return floorTo(this.calendar.now(), this.calendar.grid());
  }

  #arrive() {
    const { start, end } = this.calendar.range;
    const isAhead = this.#cell && this.#cell.instant >= start && this.#cell.instant < end;
    if (!isAhead) {
      const isNowShown = this.#nowCell >= start && this.#nowCell < end;
      this.#cell = { row: this.#cell?.row ?? 0, instant: isNowShown ? this.#nowCell : start };
    }
    this.#show();
  }

  /** The selection stays, but nothing floats over what has the focus now. */
  #leave() {
    this.calendar.drawing.drawCursor(null);
    this.calendar.tip.hide();
  }

  #key(event) {
    const command = commandFor(event);
    // Space and Enter on a block that was clicked are that button's own.
    if (!command || (command.type === "enter" && event.target !== this.calendar.scroller)) return;
    if (command.type === "clear") {
      this.calendar.claims.clear();
      return;
    }
    event.preventDefault();
    this.calendar.quiet();
    if (this.#cell === null) this.#arrive();
    if (command.type === "enter") this.#enter();
    else this.#move(command);
  }

  #move(command) {
    const { calendar } = this;
    const { rows } = calendar.geometry.layout;
    const from = this.#cell;
    const surroundings = { rows, snap: this.#slot, zone: calendar.zone, nowCell: this.#nowCell };
    this.#cell = cellAfter(from, command, surroundings);
    if (command.extends) this.#anchor ??= from;
    else this.#anchor = null;
    this.#turnPage();
    this.#show();
  }

  /** Another range has another grid only where days begin differently; keep to its lines. */
  #turnPage() {
    this.calendar.showInstant(this.#cell.instant);
    this.#cell.instant = floorTo(this.#cell.instant, this.calendar.grid());
  }

  #show() {
    const { calendar } = this;
    const box = calendar.drawing.drawCursor(this.#cell, this.#slot);
    if (box) calendar.drawing.reveal(box);
    if (this.#anchor) this.#showSelection();
    else {
      calendar.claims.clear();
      calendar.announce(this.#describeCell());
    }
  }

  #showSelection() {
    const { calendar } = this;
    const claim = claimOfCells(this.#anchor, this.#cell, calendar.grid());
    const problems = calendar.claims.show(claim);
    const verdict = problems.length ? problems.join(" ") : "free";
    const span = spanText(claim.start, claim.end, calendar.zone);
    const length = lengthText(claim.end - claim.start);
    calendar.announce(`${count(claim.rows.length, "GPU")}, ${span}, ${length}, ${verdict}`);
  }

  #reservations() {
    const { row, instant } = this.#cell;
    const { gpu } = this.calendar.geometry.layout.rows[row];
    const wish = { gpus: [gpu.uuid], start: instant, end: instant + this.#slot };
    return conflictsOf(wish, this.calendar.store.all());
  }

  #describeCell() {
    const { calendar } = this;
    const { row, instant } = this.#cell;
    const place = calendar.geometry.layout.rows[row];
    const taken = this.#reservations().map(
      ({ title, owner, isMine }) => `${title}, ${isMine ? "yours" : `by ${owner}`}`,
    );
    const isPast = instant + this.#slot <= calendar.now();
    const away = [place.gpu, place.host].find((thing) => !isAnswering(thing));
    return [
      gpuName(place),
      spanText(instant, instant + this.#slot, calendar.zone),
      taken.join("; ") || (isPast ? "past" : "free"),
      ...(away ? [away.reason || away.state] : []),
    ].join(", ");
  }

  #enter() {
    const { calendar } = this;
    const [reservation] = this.#reservations();
    if (!this.#anchor && reservation) calendar.openDetails(reservation);
    else {
      const anchor = this.#anchor ?? this.#cell;
      calendar.claims.bookOrRefuse(claimOfCells(anchor, this.#cell, calendar.grid()));
    }
  }
}
