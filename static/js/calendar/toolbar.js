/** The bar above the calendar: which time, how near, what is shown. Remembers the choices. */

import { ZOOMS } from "./ranges.js";
import { clock, localParts, offsetName, toDateInput } from "./timezone.js";
import { periodText } from "./wording.js";

const ZOOM_KEY = "th-calendar-zoom";
const CANCELLED_KEY = "th-calendar-cancelled";

/** Storage may be forbidden; then nothing is remembered. */
function remembered(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function remember(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // The choice still holds for this page.
  }
}

/** The remembered zoom, else three days, or one where the screen is narrow. */
export function firstZoom() {
  const name = remembered(ZOOM_KEY) ?? (innerWidth < 640 ? "day" : "3days");
  return ZOOMS.find((zoom) => zoom.name === name) ?? ZOOMS[2];
}

export class Toolbar {
  /**
   * @param {HTMLElement} root holds `[data-go]`, `[data-zoom]` and the rest, see calendar.html
   * @param {string} zone
   * @param {{go: (where: -1|0|1) => void, zoom: (zoom: object) => void, date: (text: string) => void,
   *   book: () => void, filter: () => void}} on
   */
  constructor(root, zone, on) {
    this.root = root;
    this.zone = zone;
    this.period = root.querySelector("[data-period]");
    this.date = root.querySelector("[data-date]");
    this.updated = root.querySelector("[data-updated]");
    this.cancelled = root.querySelector("[data-show-cancelled]");
    this.cancelled.checked = remembered(CANCELLED_KEY) !== "no";
    root.querySelector("[data-zone]").textContent = zone.replaceAll("_", " ");
    // "UTC, UTC" says nothing more than "UTC".
    root.querySelector("[data-offset]").hidden = zone === "UTC";
    this.#listen(on);
  }

  #listen(on) {
    for (const button of this.root.querySelectorAll("[data-go]")) {
      button.addEventListener("click", () => on.go(Number(button.dataset.go)));
    }
    for (const button of this.root.querySelectorAll("[data-zoom]")) {
      const zoom = ZOOMS.find(({ name }) => name === button.dataset.zoom);
      button.addEventListener("click", () => {
        remember(ZOOM_KEY, zoom.name);
        on.zoom(zoom);
      });
    }
    this.root.querySelector("[data-book]").addEventListener("click", on.book);
    this.date.addEventListener("change", () => {
      // A year that is still being typed, 0020 on the way to 2027, is below the field's minimum.
      if (this.date.value && this.date.validity.valid) on.date(this.date.value);
    });
    this.cancelled.addEventListener("change", () => {
      remember(CANCELLED_KEY, this.cancelled.checked ? "yes" : "no");
      on.filter();
    });
  }

  get showsCancelled() {
    return this.cancelled.checked;
  }

  show(range, zoom) {
    this.period.textContent = periodText(range, this.zone);
    this.date.value = toDateInput(range.start, this.zone);
    this.root.querySelector("[data-offset]").textContent = `(${this.#offsets(range)})`;
    for (const button of this.root.querySelectorAll("[data-zoom]")) {
      button.setAttribute("aria-pressed", String(button.dataset.zoom === zoom.name));
    }
  }

  #offsets({ start, end }) {
    const [from, to] = [offsetName(start, this.zone), offsetName(end - 1, this.zone)];
    return from === to ? from : `${from} → ${to}`;
  }

  showUpdated(now) {
    const seconds = String(localParts(now, this.zone).second).padStart(2, "0");
    this.lastUpdate = `${clock(now, this.zone)}:${seconds}`;
    this.updated.textContent = `Updated ${this.lastUpdate}`;
    this.updated.classList.remove("is-late");
  }

  showFailure(message) {
    const since = this.lastUpdate ? `Not updated since ${this.lastUpdate}` : "Not loaded";
    this.updated.textContent = `${since}: ${message}`;
    this.updated.classList.add("is-late");
  }
}
