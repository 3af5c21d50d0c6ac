/** The calendar page: holds its parts together. What each part does is in its own module. */

import { ApiError } from "../http.js";
import { BookingDialog } from "./booking.js";
import { Changes } from "./changes.js";
import { Claims } from "./claims.js";
import { KeyboardCursor } from "./cursor.js";
import { ReservationStore } from "./data.js";
import { DetailsDialog } from "./details.js";
import { Dragging } from "./dragging.js";
import { Drawing } from "./drawing.js";
import { layOut, scaleFor, Timeline } from "./geometry.js";
import { policyFrom } from "./model.js";
import { Notice } from "./notice.js";
import { PointerGestures } from "./pointer.js";
import { pollWhileVisible } from "./polling.js";
import { neighbour, rangeAround, rangeWith } from "./ranges.js";
import { problemsOf } from "./selection.js";
import { refreshStates } from "./states.js";
import { fromLocalInput, HOUR, instantsOf, startOfDay } from "./timezone.js";
import { Tip } from "./tip.js";
import { firstZoom, Toolbar } from "./toolbar.js";

const REFRESH = 15_000;
const STATES_REFRESH = 60_000;
const NOW_REFRESH = 10_000;
const ROW_HEIGHT = 28;
const TOUCH_ROW_HEIGHT = 36;

export class Calendar {
  /**
   * @param {HTMLElement} root see calendar.html
   * @param {object} config the page's `calendar-config`
   */
  constructor(root, config) {
    this.root = root;
    this.config = config;
    this.user = config.user;
    this.zone = config.timeZone;
    this.policy = policyFrom(config.policy);
    this.hosts = config.hosts.filter((host) => host.gpus.length > 0);
    this.places = new Map(
      this.hosts.flatMap((host) => host.gpus.map((gpu) => [gpu.uuid, { gpu, host }])),
    );
    this.store = new ReservationStore({ url: config.urls.reservations, username: config.user.username });
    this.scroller = root.querySelector("[data-scroller]");
    this.live = root.querySelector("[data-live]");
    this.tip = new Tip(root.querySelector("[data-tip]"));
    this.notice = new Notice(root.querySelector("[data-notice]"));
    this.drawing = new Drawing(this.scroller, { user: this.user, zone: this.zone });
    this.zoom = firstZoom();
    this.range = rangeAround(this.now(), this.zoom, this.zone);
    this.#makeParts();
  }

  #makeParts() {
    this.toolbar = new Toolbar(this.root, this.zone, {
      go: (where) => this.go(where),
      zoom: (zoom) => this.setZoom(zoom),
      date: (text) => this.goToDate(text),
      book: () => this.claims.bookFromNothing(),
      filter: () => this.drawReservations(),
    });
    this.changes = new Changes(this.store, this.notice, this.zone, () => this.drawReservations());
    this.claims = new Claims(this);
    this.keyboard = new KeyboardCursor(this, this.scroller);
    this.gestures = new PointerGestures(this.scroller, new Dragging(this));
    const shared = { zone: this.zone, user: this.user, now: () => this.now(), closed: () => this.#closed() };
    this.booking = new BookingDialog(
      document.getElementById("booking-dialog"),
      {
        ...shared,
        rows: () => this.geometry.layout.rows,
        reservations: () => this.store.all(),
        problems: (wish, changed) => this.problems(wish, changed),
        save: (fields, changed) => this.changes.save(fields, changed),
      },
      this.policy.step ?? 60_000,
    );
    this.details = new DetailsDialog(document.getElementById("details-dialog"), {
      ...shared,
      rowsFor: (uuids) => this.geometry.layout.rows.filter(({ gpu }) => uuids.includes(gpu.uuid)),
      act: (name, reservation) => this.changes.act(name, reservation),
      edit: (reservation) => this.booking.open({ ...reservation, startsNow: false }, reservation),
    });
  }

  /** Draw, load, and keep up to date. */
  async start() {
    this.drawGrid();
    this.reveal(this.now());
    new ResizeObserver(() => this.#fit()).observe(this.scroller);
    setInterval(() => this.#tick(), NOW_REFRESH);
    pollWhileVisible(() => this.refresh(), REFRESH);
    pollWhileVisible(() => this.#refreshStates(), STATES_REFRESH);
    await this.refresh();
    this.root.dataset.ready = "";
  }

  now() {
    return this.store.now();
  }

  /** The grid that gestures snap to; its lines start with the range, at local midnight. */
  grid() {
    const { range, zoom, policy } = this;
    return { origin: range.start, snap: zoom.snap, now: this.now(), minLength: policy.minLength };
  }

  // -- Drawing ---------------------------------------------------------------------------------

  drawGrid() {
    const { scroller, zoom, range } = this;
    const { scrollTop } = scroller;
    const rowHeight = matchMedia("(pointer: coarse)").matches ? TOUCH_ROW_HEIGHT : ROW_HEIGHT;
    const labels = parseFloat(getComputedStyle(this.root).getPropertyValue("--cal-labels"));
    this.width = scroller.clientWidth;
    const scale = scaleFor(range, this.width - labels, zoom.leastHourWidth);
    this.geometry = new Timeline(layOut(this.hosts, rowHeight), range, scale);
    this.drawing.drawGrid(this.geometry);
    scroller.scrollTop = scrollTop;
    this.toolbar.show(range, zoom);
    this.#tick();
    this.drawReservations();
    this.claims.redraw();
    this.keyboard.redraw();
  }

  drawReservations() {
    const known = this.store.in(this.range);
    const shown = this.toolbar.showsCancelled ? known : known.filter((one) => !one.isCancelled);
    this.drawnAt = this.now();
    this.drawing.drawReservations(shown, this.drawnAt);
  }

  /** Time goes on: the line, the shade, and blocks that begin or end. */
  #tick() {
    const now = this.now();
    const { horizon } = this.policy;
    this.drawing.drawNow(now, horizon === null ? null : now + horizon);
    const passed = (instant) => instant > this.drawnAt && instant <= now;
    const hasChanged = this.store.in(this.range).some((one) => passed(one.start) || passed(one.end));
    if (hasChanged && !this.gestures.isDragging) this.drawReservations();
  }

  #fit() {
    if (this.scroller.clientWidth === this.width || this.gestures.isDragging) return;
    const leftmost = this.range.start + this.scroller.scrollLeft / this.geometry.scale;
    this.drawGrid();
    this.scroller.scrollLeft = this.geometry.leftOf(leftmost);
  }

  // -- Data ------------------------------------------------------------------------------------

  /** Load the shown range; a drag goes on undisturbed and the next round brings the news. */
  async refresh() {
    if (this.gestures.isDragging) return;
    const { range } = this;
    this.root.setAttribute("aria-busy", "true");
    try {
      const hasChanged = await this.store.load(range);
      this.toolbar.showUpdated(this.now());
      if (hasChanged) this.#showNews();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.toolbar.showFailure(error.message);
    } finally {
      if (range === this.range) this.root.removeAttribute("aria-busy");
    }
  }

  #showNews() {
    if (!this.gestures.isDragging) this.drawReservations();
    if (this.booking.dialog.open) this.booking.refresh();
    const seen = this.details.isOpen ? this.store.get(this.details.id) : null;
    if (seen) this.details.show(seen);
  }

  async #refreshStates() {
    try {
      const haveChanged = await refreshStates(this.config.urls, this.hosts);
      if (haveChanged) this.drawing.drawStates();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.toolbar.showFailure(error.message);
    }
  }

  // -- Which time is shown ---------------------------------------------------------------------

  /** @param {-1|0|1} where back, to now, or on */
  go(where) {
    const { range, zoom, zone } = this;
    if (where === 0) this.#show(rangeAround(this.now(), zoom, zone), this.now());
    else this.#show(neighbour(range, where, zoom, zone));
  }

  setZoom(zoom) {
    const { start, end } = this.range;
    const now = this.now();
    const middle = now >= start && now < end ? now : start;
    this.zoom = zoom;
    this.#show(rangeAround(middle, zoom, this.zone), middle);
  }

  /** @param {string} text value of the date field */
  goToDate(text) {
    const local = fromLocalInput(text);
    const noon = local && instantsOf({ ...local, hour: 12 }, this.zone)[0];
    if (!noon) return;
    const day = startOfDay(noon, this.zone);
    // The six-hour view begins an hour before the moment asked for.
    const start = this.zoom.hours ? day + HOUR : day;
    this.#show(rangeAround(start, this.zoom, this.zone), day);
  }

  /** Turn pages, if need be, to where the instant is. */
  showInstant(instant) {
    const range = rangeWith(instant, this.range, this.zoom, this.zone);
    if (range !== this.range) this.#show(range, instant);
  }

  #show(range, instant = range.start) {
    this.range = range;
    this.tip.hide();
    this.drawGrid();
    this.reveal(instant);
    this.refresh();
  }

  /** Scroll so that the instant stands near the left, with a little of what was before. */
  reveal(instant) {
    const visible = this.scroller.clientWidth;
    this.scroller.scrollLeft = this.geometry.leftOf(instant) - visible / 8;
  }

  // -- What a gesture needs to know ----------------------------------------------------------------

  cellAt(clientX, clientY) {
    const { left, top } = this.drawing.canvas.getBoundingClientRect();
    return this.geometry.cellAt(clientX - left, clientY - top);
  }

  problems(wish, changed = null) {
    const { places: gpus, policy, zone } = this;
    const reservations = this.store.all();
    return problemsOf(wish, { reservations, gpus, policy, zone, changed, now: this.now() });
  }

  /** A dialog was closed: back to the calendar, with nothing selected. */
  #closed() {
    this.claims.clear();
    this.scroller.focus({ preventScroll: true });
  }

  // -- Words -----------------------------------------------------------------------------------

  openDetails(reservation) {
    this.tip.hide();
    this.details.open(reservation);
  }

  announce(text) {
    this.live.textContent = text;
  }

  /** Put away what the last gesture left behind. */
  quiet() {
    this.notice.hide();
  }
}
