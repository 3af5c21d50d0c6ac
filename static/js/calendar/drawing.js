/**
 * Drawing onto the canvas: reservations, the selection, the cursor, now and the past. Every view's
 * geometry will do that has `rectangles` and `leftOf`.
 */

import { element, place } from "./dom.js";
import { allowedTo, hueOf, stateAt, STATE_NAMES } from "./model.js";
import { buildTimeline, showStates } from "./timeline.js";
import { clock } from "./timezone.js";
import { count, gpuListText, spanText } from "./wording.js";

export class Drawing {
  /** @param {HTMLElement} scroller @param {{user: object, zone: string}} reader */
  constructor(scroller, { user, zone }) {
    this.scroller = scroller;
    this.user = user;
    this.zone = zone;
    this.blocks = element("div", "cal-blocks");
    this.past = element("div", "cal-past");
    this.beyond = element("div", "cal-beyond");
    this.nowLine = element("div", "cal-now");
    this.selection = element("div", "cal-selection");
    this.cursor = element("div", "cal-cursor", { hidden: "" });
  }

  /** Build everything but the reservations for a new range, scale or set of rows. */
  drawGrid(geometry) {
    this.geometry = geometry;
    this.rowOf = new Map(geometry.layout.rows.map(({ gpu }, number) => [gpu.uuid, number]));
    const { head, body, canvas } = buildTimeline(geometry, this.zone);
    this.head = head;
    this.body = body;
    this.canvas = canvas;
    const { past, beyond, blocks, nowLine, selection, cursor } = this;
    canvas.append(past, beyond, blocks, nowLine, selection, cursor);
    this.scroller.style.setProperty("--cal-row", `${geometry.layout.rowHeight}px`);
    this.scroller.replaceChildren(head, body);
    this.drawStates();
  }

  drawStates() {
    showStates(this.body, this.geometry.layout);
  }

  /** Shade what cannot be booked any more, or not yet, and put the line between. */
  drawNow(now, horizonEnd) {
    const { range, width } = this.geometry;
    const left = Math.max(0, Math.min(width, this.geometry.leftOf(now)));
    place(this.past, { width: left });
    const isShown = now >= range.start && now < range.end;
    this.nowLine.hidden = !isShown;
    if (isShown) place(this.nowLine, { left });
    const far = horizonEnd === null ? width : Math.max(0, this.geometry.leftOf(horizonEnd));
    this.beyond.hidden = far >= width;
    place(this.beyond, { left: far });
  }

  /** Row numbers of a reservation's GPUs; those the reader cannot see have none. */
  rowsOf({ gpus }) {
    return gpus.map((uuid) => this.rowOf.get(uuid)).filter((number) => number !== undefined);
  }

  /** @param {import("./model.js").Reservation[]} reservations */
  drawReservations(reservations, now) {
    const hadFocus = this.blocks.contains(document.activeElement);
    const order = [...reservations].sort((a, b) => b.isCancelled - a.isCancelled || a.start - b.start);
    const fragment = document.createDocumentFragment();
    for (const reservation of order) {
      const rows = this.rowsOf(reservation);
      for (const box of this.geometry.rectangles(rows, reservation.start, reservation.end)) {
        fragment.append(this.#block(reservation, box, now));
      }
    }
    this.blocks.replaceChildren(fragment);
    if (hadFocus) this.scroller.focus({ preventScroll: true });
  }

  #block(reservation, box, now) {
    const state = stateAt(reservation, now);
    const classes = ["cal-block", `is-${state}`, reservation.isMine ? "is-mine" : "is-others"];
    if (box.firstRow === box.lastRow) classes.push("is-one-row");
    if (box.isCutLeft) classes.push("is-cut-left");
    if (box.isCutRight) classes.push("is-cut-right");
    const block = element("button", classes.join(" "), {
      type: "button",
      tabindex: -1,
      "data-reservation": reservation.id,
      "aria-label": this.describe(reservation, now).join(", "),
    });
    place(block, box);
    if (!reservation.isMine) block.style.setProperty("--cal-hue", hueOf(reservation.owner));
    block.append(this.#blockText(reservation), ...this.#handles(reservation, box, now));
    return block;
  }

  #blockText({ title, owner, isMine, start, end }) {
    const times = `${clock(start, this.zone)}–${clock(end, this.zone)}`;
    return element(
      "span",
      "cal-block-text",
      {},
      element("span", "cal-block-owner", {}, isMine ? "You" : owner),
      element("span", "cal-block-title", {}, title),
      element("span", "cal-block-times", {}, times),
    );
  }

  #handles(reservation, box, now) {
    const can = allowedTo(reservation, this.user, now);
    const handles = [];
    if (can.move && !box.isCutLeft) handles.push(element("i", "cal-handle", { "data-edge": "start" }));
    if (can.extend && !box.isCutRight) handles.push(element("i", "cal-handle", { "data-edge": "end" }));
    return handles;
  }

  /** What there is to say about a reservation in short, line by line. */
  describe(reservation, now) {
    const rows = this.rowsOf(reservation).map((number) => this.geometry.layout.rows[number]);
    return [
      reservation.title,
      reservation.isMine ? "yours" : reservation.owner,
      `${count(reservation.gpus.length, "GPU")}: ${gpuListText(rows)}`,
      spanText(reservation.start, reservation.end, this.zone),
      STATE_NAMES[stateAt(reservation, now)].toLowerCase(),
    ];
  }

  /** All blocks of a reservation: GPUs that are no neighbours make several. */
  blocksOf(id) {
    return this.blocks.querySelectorAll(`[data-reservation="${id}"]`);
  }

  /** Outline the blocks of one reservation, or of none (null). */
  highlight(id) {
    for (const block of this.blocks.querySelectorAll(".is-hot")) block.classList.remove("is-hot");
    if (id !== null) for (const block of this.blocksOf(id)) block.classList.add("is-hot");
  }

  /** Fade the blocks of the reservation that is being dragged. */
  fade(id) {
    for (const block of this.blocks.querySelectorAll(".is-moving")) {
      block.classList.remove("is-moving");
    }
    if (id !== null) for (const block of this.blocksOf(id)) block.classList.add("is-moving");
  }

  /** @param {{rows: number[], start: number, end: number}|null} claim */
  drawSelection(claim, hasProblems) {
    const boxes = claim ? this.geometry.rectangles(claim.rows, claim.start, claim.end) : [];
    this.selection.classList.toggle("is-refused", hasProblems);
    this.selection.replaceChildren(
      ...boxes.map((box) => {
        const node = element("div", "cal-selection-box");
        place(node, box);
        return node;
      }),
    );
  }

  /** @param {{row: number, instant: number}|null} cell */
  drawCursor(cell, slot) {
    const box = cell && this.geometry.rectangles([cell.row], cell.instant, cell.instant + slot)[0];
    this.cursor.hidden = !box;
    if (box) place(this.cursor, { ...box, width: Math.max(6, box.width) });
    return box;
  }

  /** The part of the screen where the canvas shows, without the sticky heads. */
  viewport() {
    const { left, top, right, bottom } = this.scroller.getBoundingClientRect();
    const { scroller } = this;
    return {
      left: left + this.head.firstChild.offsetWidth,
      top: top + this.head.offsetHeight,
      right: Math.min(right, left + scroller.clientLeft + scroller.clientWidth),
      bottom: Math.min(bottom, top + scroller.clientTop + scroller.clientHeight),
    };
  }

  /** Scroll as little as needed to show a rectangle of the canvas. */
  reveal(box) {
    const view = this.viewport();
    const { left, top } = this.canvas.getBoundingClientRect();
    const nearest = (from, to, low, high) =>
      from < low ? from - low : Math.max(0, Math.min(to - high, from - low));
    this.scroller.scrollBy(
      nearest(left + box.left, left + box.left + box.width, view.left, view.right),
      nearest(top + box.top, top + box.top + box.height, view.top, view.bottom),
    );
  }
}
