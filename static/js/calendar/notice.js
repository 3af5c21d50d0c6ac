/** The message at the foot of the calendar: what was done, or why not. Also read out. */

const SHOWN_FOR = 8000; // ms; refusals stay until they are answered or put away

export class Notice {
  #timer = null;

  /** @param {HTMLElement} node with `[data-text]` (role status) and `[data-dismiss]` */
  constructor(node) {
    this.node = node;
    this.text = node.querySelector("[data-text]");
    node.querySelector("[data-dismiss]").addEventListener("click", () => this.hide());
  }

  show(text) {
    this.#set(text, false);
    this.#timer = setTimeout(() => this.hide(), SHOWN_FOR);
  }

  showRefusal(text) {
    this.#set(text, true);
  }

  hide() {
    if (this.text.textContent) this.#set("", false);
  }

  #set(text, isRefusal) {
    clearTimeout(this.#timer);
    this.text.textContent = text;
    this.node.classList.toggle("is-shown", text !== "");
    this.node.classList.toggle("is-refusal", isRefusal);
  }
}
