/** A part of the page that is fetched again every few seconds; unchanged, it costs a 304. */

import { pollWhileVisible } from "../calendar/polling.js";
import { showAges } from "./ages.js";
import { morph } from "./morph.js";

const INTERVAL = 5000;

export class LivePart {
  #root;
  #state;
  #etag;
  #onShown;
  #offset; // of the server's clock to this one, in ms

  /** @param {HTMLElement} root with data-live, data-etag, data-now @param {HTMLElement} state */
  constructor(root, state) {
    this.#root = root;
    this.#state = state;
    this.#etag = root.dataset.etag;
    this.#offset = Date.parse(root.dataset.now) - Date.now();
  }

  /** The server's clock in ms: ages do not depend on how this computer's clock is set. */
  clock() {
    return Date.now() + this.#offset;
  }

  /** @param {() => void} onShown called after each change of the part */
  start(onShown) {
    this.#onShown = onShown;
    this.#say("Live, every 5 s", "live");
    pollWhileVisible(() => this.#refresh(), INTERVAL);
  }

  async #refresh() {
    try {
      await this.#fetch();
      this.#say("Live, every 5 s", "live");
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      this.#say("Not updating: TensorHive does not answer", "lost");
    }
  }

  async #fetch() {
    const response = await fetch(this.#root.dataset.live, {
      headers: { "If-None-Match": this.#etag },
      cache: "no-store",
      credentials: "same-origin",
      redirect: "manual",
    });
    this.#setClock(response.headers.get("Date"));
    if (response.status === 304) return;
    if (response.type === "opaqueredirect") return location.reload(); // signed out: to the login
    if (!response.ok) throw new TypeError(`status ${response.status}`);
    this.#show(await response.text());
    this.#etag = response.headers.get("ETag") ?? "";
  }

  #show(html) {
    const wanted = document.createElement("template");
    wanted.innerHTML = html;
    const part = this.#root.cloneNode(false);
    part.append(wanted.content);
    morph(this.#root, part);
    showAges(this.#root, this.clock());
    this.#onShown();
  }

  /** Follow the server's clock; its header has whole seconds, so small differences say nothing. */
  #setClock(date) {
    const offset = Date.parse(date ?? "") + 500 - Date.now();
    if (Math.abs(offset - this.#offset) > 2000) this.#offset = offset;
  }

  #say(text, state) {
    if (this.#state.textContent !== text) this.#state.textContent = text;
    this.#state.dataset.state = state;
  }
}
