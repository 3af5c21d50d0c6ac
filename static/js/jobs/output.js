/** What a program printed, made into plain text that arrives in pieces. */

// An escape sequence: CSI … final, OSC/DCS/PM/APC … end, or a short one.
// eslint-disable-next-line no-control-regex
const ESCAPE = /\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])/g;
const BEGUN = /\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)?$/;
const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;
const LONGEST_ESCAPE = 4096;

export class Output {
  #text = "";
  #rest = "";
  #limit;

  /** @param {number} limit of characters that are kept; the oldest go first */
  constructor(limit = 400_000) {
    this.#limit = limit;
  }

  get text() {
    return this.#text;
  }

  clear() {
    this.#text = this.#rest = "";
  }

  /** Add a piece: colours and other commands to a terminal are dropped. */
  push(piece) {
    let raw = (this.#rest + piece).replace(ESCAPE, "");
    const begun = BEGUN.exec(raw);
    const isCut = begun !== null && raw.length - begun.index < LONGEST_ESCAPE;
    this.#rest = isCut ? begun[0] : "";
    if (isCut) raw = raw.slice(0, begun.index);
    if (raw.endsWith("\r")) {
      // Whether it ends a line, only the next piece tells.
      this.#rest = `\r${this.#rest}`;
      raw = raw.slice(0, -1);
    }
    this.#append(raw.replaceAll("\r\n", "\n").replace(CONTROL, ""));
  }

  /** A carriage return alone begins the line anew, as progress bars do. */
  #append(text) {
    const start = this.#text.lastIndexOf("\n") + 1;
    const lines = (this.#text.slice(start) + text).split("\n");
    const shown = lines.map((line) => line.slice(line.lastIndexOf("\r") + 1)).join("\n");
    const whole = this.#text.slice(0, start) + shown;
    this.#text = whole.length > this.#limit ? whole.slice(-this.#limit) : whole;
  }
}
