/** The reservations the page knows, kept in step with the server. */

import { fetchJson } from "../http.js";
import { reservationFrom, toApi } from "./model.js";

const PAGE_SIZE = 200;

export class ReservationStore {
  #known = new Map();
  #changes = 0;
  #clockAhead = 0;

  /** @param {{url: string, username: string, fetch?: typeof fetchJson}} options */
  constructor({ url, username, fetch = fetchJson }) {
    this.url = url;
    this.username = username;
    this.fetch = fetch;
  }

  /** Now by the server's clock, so that a wrong clock of the reader moves nothing. */
  now() {
    return Date.now() + this.#clockAhead;
  }

  all() {
    return [...this.#known.values()];
  }

  get(id) {
    return this.#known.get(id);
  }

  /** Those that share a moment with the range. */
  in({ start, end }) {
    return this.all().filter((one) => one.start < end && one.end > start);
  }

  /**
   * Ask the server for the range and take its word.
   *
   * @returns {Promise<boolean>} whether anything differs from what was known
   * @throws {import("../http.js").ApiError}
   */
  async load(range) {
    const changes = this.#changes;
    const results = await this.#fetchAll(range);
    // The answer may be older than a change made here meanwhile; the next load will know both.
    if (changes !== this.#changes) return false;
    return this.#replace(range, results);
  }

  async #fetchAll({ start, end }) {
    const query = new URLSearchParams({
      starts_before: toApi(end),
      ends_after: toApi(start),
      page_size: PAGE_SIZE,
    });
    const results = [];
    let next = `${this.url}?${query}`;
    while (next) {
      const { data, date } = await this.fetch(next);
      this.#keepTime(date);
      results.push(...data.results);
      // Behind a proxy the host in `next` may not be the reader's; its query is what matters.
      next = data.next ? `${this.url}${new URL(data.next, "http://localhost").search}` : null;
    }
    return results;
  }

  /** The header counts whole seconds and was a journey away: below two seconds it says nothing. */
  #keepTime(date) {
    if (date === null) return;
    const ahead = date + 500 - Date.now();
    this.#clockAhead = Math.abs(ahead) < 2000 ? 0 : ahead;
  }

  #replace(range, results) {
    const before = this.in(range);
    const fresh = new Map(
      results.map((json) => [json.id, reservationFrom(json, this.username)]),
    );
    const isSame =
      before.length === fresh.size &&
      before.every((old) => JSON.stringify(old) === JSON.stringify(fresh.get(old.id)));
    if (isSame) return false;
    for (const { id } of before) this.#known.delete(id);
    for (const [id, reservation] of fresh) this.#known.set(id, reservation);
    return true;
  }

  /** Book. `fields` are the API's. @returns {Promise<import("./model.js").Reservation>} */
  create(fields) {
    return this.#write(this.url, "POST", fields);
  }

  change(id, fields) {
    return this.#write(`${this.url}${id}/`, "PATCH", fields);
  }

  cancel(id) {
    return this.#write(`${this.url}${id}/cancel/`, "POST", {});
  }

  release(id) {
    return this.#write(`${this.url}${id}/release/`, "POST", {});
  }

  /** Show a change before the server has agreed. @returns {() => void} takes it back */
  assume(id, changes) {
    const before = this.#known.get(id);
    this.#changes += 1;
    this.#known.set(id, { ...before, ...changes });
    return () => {
      this.#changes += 1;
      this.#known.set(id, before);
    };
  }

  async #write(url, method, body) {
    this.#changes += 1;
    try {
      const { data } = await this.fetch(url, { method, body });
      const reservation = reservationFrom(data, this.username);
      this.#known.set(reservation.id, reservation);
      return reservation;
    } finally {
      this.#changes += 1;
    }
  }
}
