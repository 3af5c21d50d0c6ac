/** The log of a task, followed while its panel is open and somebody looks. */

import { pollWhileVisible } from "../calendar/polling.js";
import { fetchJson } from "../http.js";
import { Output } from "./output.js";

const INTERVAL = 2000;
const LONGEST_WAIT = 30_000;
const TAIL = 64 * 1024;

export class LogPanel {
  #panel;
  #pre;
  #note;
  #output = new Output();
  #next = -TAIL;
  #isComplete = false;
  #isBusy = false;
  #wait = INTERVAL;
  #dueAt = 0;

  /** @param {HTMLDetailsElement} panel with data-log, and [data-log-text], [data-log-note] inside */
  constructor(panel) {
    this.#panel = panel;
    this.#pre = panel.querySelector("[data-log-text]");
    this.#note = panel.querySelector("[data-log-note]");
  }

  follow() {
    this.#panel.addEventListener("toggle", () => this.look());
    pollWhileVisible(() => this.look(), 500);
    this.look();
  }

  /** Read what is new, if the panel is open and it is time. */
  async look() {
    const isWanted = this.#panel.open && this.#panel.isConnected && !this.#isComplete;
    if (!isWanted || this.#isBusy || Date.now() < this.#dueAt) return;
    this.#isBusy = true;
    try {
      await this.#read();
      this.#wait = INTERVAL;
    } catch (error) {
      if (error.name !== "ApiError") throw error;
      this.#say(error.message);
      this.#wait = Math.min(this.#wait * 1.5, LONGEST_WAIT);
    } finally {
      this.#isBusy = false;
      this.#dueAt = Date.now() + this.#wait;
    }
  }

  async #read() {
    const { data } = await fetchJson(`${this.#panel.dataset.log}?offset=${this.#next}&limit=${TAIL}`);
    if (data.state === "waiting") return this.#say("Waiting for the host…");
    if (data.size < this.#next) return this.#beginAnew();
    if (this.#next < 0 && data.offset > 0) this.#output.push("… (earlier output is in the file)\n");
    this.#next = data.next_offset;
    this.#isComplete = data.complete;
    this.#show(data.text);
    this.#say(this.#state(data));
  }

  /** The file became shorter: somebody emptied it. */
  #beginAnew() {
    this.#output.clear();
    this.#next = 0;
  }

  #show(text) {
    const isAtEnd = this.#pre.scrollHeight - this.#pre.scrollTop - this.#pre.clientHeight < 8;
    this.#output.push(text);
    if (this.#pre.textContent !== this.#output.text) this.#pre.textContent = this.#output.text;
    if (isAtEnd) this.#pre.scrollTop = this.#pre.scrollHeight;
  }

  #state(data) {
    if (data.complete) return data.size ? "Complete" : "It printed nothing";
    return data.size ? "Following" : "Nothing printed yet";
  }

  #say(text) {
    if (this.#note.textContent !== text) this.#note.textContent = text;
  }
}
