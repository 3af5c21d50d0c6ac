/** Changes of reservations, with the word about how they went. */

import { ApiError } from "../http.js";
import { changedFields, toApi } from "./model.js";
import { count, spanText } from "./wording.js";

const DONE = { cancel: "Cancelled", release: "Released" };

export class Changes {
  /**
   * @param {import("./data.js").ReservationStore} store
   * @param {import("./notice.js").Notice} notice
   * @param {string} zone
   * @param {() => void} redraw
   */
  constructor(store, notice, zone, redraw) {
    Object.assign(this, { store, notice, zone, redraw });
  }

  /** Book, or change the given reservation. @throws {ApiError} */
  async save(fields, changed) {
    const saved = changed
      ? await this.store.change(changed.id, fields)
      : await this.store.create(fields);
    this.redraw();
    this.#confirm(changed ? "Saved" : "Booked", saved);
  }

  /** @param {"cancel"|"release"} name @throws {ApiError} */
  async act(name, reservation) {
    const changed = await this.store[name](reservation.id);
    this.redraw();
    this.#confirm(DONE[name], changed);
  }

  /**
   * Move or resize: shown at once, taken back with the reason if the server refuses.
   *
   * @param {{gpus: string[], start: number, end: number}} claim
   */
  async reschedule(reservation, { gpus, start, end }) {
    const wanted = { gpus, starts_at: toApi(start), ends_at: toApi(end) };
    const fields = changedFields(reservation, wanted);
    if (Object.keys(fields).length === 0) return;
    const takeBack = this.store.assume(reservation.id, { gpus, start, end });
    this.redraw();
    try {
      this.#confirm("Changed", await this.store.change(reservation.id, fields));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      takeBack();
      this.notice.showRefusal(`Not changed. ${error.message}`);
    }
    this.redraw();
  }

  #confirm(verb, { title, gpus, start, end }) {
    const span = spanText(start, end, this.zone);
    this.notice.show(`${verb}: ${title}, ${count(gpus.length, "GPU")}, ${span}.`);
  }
}
