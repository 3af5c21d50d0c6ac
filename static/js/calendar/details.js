/** The dialog with everything about one reservation and what one may do with it. */

import { ApiError } from "../http.js";
import { element } from "./dom.js";
import { allowedTo, stateAt, STATE_NAMES } from "./model.js";
import { count, gpuListText, lengthText, spanText } from "./wording.js";

/** Actions that cannot be taken back are asked about once more. */
const QUESTIONS = {
  cancel: { ask: "Cancel this reservation?", yes: "Yes, cancel it" },
  release: { ask: "End it now and free its GPUs?", yes: "Yes, release it" },
};

export class DetailsDialog {
  #reservation = null;
  #asked = null;

  /**
   * @param {HTMLDialogElement} dialog see _details_dialog.html
   * @param {object} calendar
   * @param {string} calendar.zone
   * @param {object} calendar.user
   * @param {() => number} calendar.now
   * @param {(uuids: string[]) => {gpu: object, host: object}[]} calendar.rowsFor
   * @param {(name: "cancel"|"release", reservation: object) => Promise<void>} calendar.act
   * @param {(reservation: object) => void} calendar.edit
   * @param {() => void} calendar.closed
   */
  constructor(dialog, calendar) {
    this.dialog = dialog;
    this.calendar = calendar;
    this.part = (name) => dialog.querySelector(`[data-part="${name}"]`);
    this.part("close").addEventListener("click", () => dialog.close());
    this.part("edit").addEventListener("click", () => this.#edit());
    this.part("cancel").addEventListener("click", () => this.#ask("cancel"));
    this.part("release").addEventListener("click", () => this.#ask("release"));
    this.part("no").addEventListener("click", () => this.#ask(null));
    this.part("yes").addEventListener("click", () => this.#act());
    dialog.addEventListener("close", () => calendar.closed());
  }

  get isOpen() {
    return this.dialog.open;
  }

  open(reservation) {
    this.show(reservation);
    this.#ask(null);
    this.part("error").hidden = true;
    this.dialog.showModal();
    this.part("close").focus();
  }

  /** The reservation it is about, while open. */
  get id() {
    return this.#reservation?.id ?? null;
  }

  /** Show what is known now; used again when the data has changed. */
  show(reservation) {
    this.#reservation = reservation;
    const now = this.calendar.now();
    const state = stateAt(reservation, now);
    this.part("title").textContent = reservation.title;
    const badge = this.part("state");
    badge.textContent = STATE_NAMES[state];
    badge.dataset.state = state;
    this.part("facts").replaceChildren(...this.#facts(reservation));
    const can = allowedTo(reservation, this.calendar.user, now);
    for (const name of ["edit", "cancel", "release"]) this.part(name).hidden = !can[name];
  }

  #facts({ owner, isMine, gpus, start, end, description, project, cancelReason }) {
    const { zone } = this.calendar;
    const when = `${spanText(start, end, zone)} (${lengthText(end - start)})`;
    const names = gpuListText(this.calendar.rowsFor(gpus));
    const facts = [
      ["Owner", isMine ? `${owner} (you)` : owner],
      ["When", when],
      ["Time zone", zone.replaceAll("_", " ")],
      [count(gpus.length, "GPU"), names || "not among those you can see"],
      ["Project", project],
      ["Description", description],
      ["Cancelled because", cancelReason],
    ];
    return facts
      .filter(([, text]) => text)
      .flatMap(([name, text]) => [element("dt", "", {}, name), element("dd", "", {}, text)]);
  }

  #edit() {
    const reservation = this.#reservation;
    this.dialog.close();
    this.calendar.edit(reservation);
  }

  #ask(name) {
    const wasAsked = this.#asked;
    this.#asked = name;
    this.part("actions").hidden = name !== null;
    this.part("question").hidden = name === null;
    if (name === null) {
      if (wasAsked) this.part(wasAsked).focus();
      return;
    }
    this.part("ask").textContent = QUESTIONS[name].ask;
    this.part("yes").textContent = QUESTIONS[name].yes;
    this.part("no").focus();
  }

  async #act() {
    this.part("yes").disabled = true;
    try {
      await this.calendar.act(this.#asked, this.#reservation);
      this.#asked = null;
      this.dialog.close();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.part("error").textContent = error.message;
      this.part("error").hidden = false;
      this.#ask(null);
    } finally {
      this.part("yes").disabled = false;
    }
  }
}
