/** The booking form: everything a drag can say, and the words a drag cannot. */

import { ApiError } from "../http.js";
import { element } from "./dom.js";
import { changedFields, stateAt, toApi } from "./model.js";
import { conflictsOf } from "./selection.js";
import { fromLocalInput, instantsOf, offsetName, toLocalInput } from "./timezone.js";
import { count, gpuName, lengthText, modelText } from "./wording.js";
import { shortened } from "./tip.js";

/** A form field that shows the reader's clock and stands for an instant. */
class MomentField {
  constructor(input, hint, zone) {
    Object.assign(this, { input, hint, zone });
    this.input.addEventListener("input", () => this.#explain());
  }

  set(instant) {
    this.instant = instant;
    this.input.value = this.shown = toLocalInput(instant, this.zone);
    this.#explain();
  }

  /** As long as nobody typed, exactly the instant that was set: seconds and the second 02:30 too. */
  #instants() {
    if (this.input.value === this.shown) return [this.instant];
    const local = fromLocalInput(this.input.value);
    return local ? instantsOf(local, this.zone) : [];
  }

  /** @returns {number|null} null while the field says no instant */
  get() {
    return this.#instants()[0] ?? null;
  }

  /** What is wrong with the field, as a sentence, or "". */
  get error() {
    if (this.get() !== null) return "";
    const isComplete = fromLocalInput(this.input.value) !== null;
    return isComplete ? "The clocks skip this time on that day." : "Enter a date and a time.";
  }

  #explain() {
    const [first, second] = this.#instants();
    const twice = second === undefined ? "" : "This time comes twice; the first is meant. ";
    this.hint.textContent = first === undefined ? "" : twice + offsetName(first, this.zone);
  }
}

export class BookingDialog {
  #gpus = [];
  #changed = null;

  /**
   * @param {HTMLDialogElement} dialog see _booking_dialog.html
   * @param {object} calendar
   * @param {string} calendar.zone
   * @param {() => {gpu: object, host: object}[]} calendar.rows
   * @param {() => number} calendar.now
   * @param {() => object[]} calendar.reservations
   * @param {(wish: object, changed: object|null) => string[]} calendar.problems
   * @param {(fields: object, changed: object|null) => Promise<void>} calendar.save
   * @param {() => void} calendar.closed
   * @param {number} step ms of the policy's grid
   */
  constructor(dialog, calendar, step) {
    this.dialog = dialog;
    this.calendar = calendar;
    this.form = dialog.querySelector("form");
    this.part = (name) => dialog.querySelector(`[data-part="${name}"]`);
    const { starts_at: start, ends_at: end } = this.form.elements;
    this.start = new MomentField(start, this.part("start-hint"), calendar.zone);
    this.end = new MomentField(end, this.part("end-hint"), calendar.zone);
    for (const input of [start, end]) input.step = Math.max(60, step / 1000);
    this.#listen();
  }

  #listen() {
    const { form, dialog } = this;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    form.addEventListener("input", () => this.refresh());
    form.elements.starts_now.addEventListener("change", () => this.#showStartsNow());
    this.part("add").addEventListener("click", () => this.#add(this.part("choice").value));
    this.part("close").addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => this.calendar.closed());
  }

  /**
   * @param {{gpus: string[], start: number, end: number, startsNow: boolean}} wish
   * @param {import("./model.js").Reservation|null} [changed] the reservation to change
   */
  open(wish, changed = null) {
    const { elements } = this.form;
    this.#changed = changed;
    this.#gpus = [...wish.gpus];
    elements.title.value = changed?.title ?? "";
    elements.description.value = changed?.description ?? "";
    this.start.set(wish.start);
    this.end.set(wish.end);
    elements.starts_now.checked = wish.startsNow;
    this.#setMode();
    this.#showErrors({});
    this.#fillChoice();
    this.#showGpus();
    this.dialog.showModal();
    elements.title.focus();
  }

  #setMode() {
    const changed = this.#changed;
    const isRunning = changed !== null && stateAt(changed, this.calendar.now()) === "running";
    this.part("heading").textContent = changed ? "Change the reservation" : "Book GPUs";
    this.part("submit").textContent = changed ? "Save" : "Book";
    this.part("running-note").hidden = !isRunning;
    this.part("starts-now").hidden = changed !== null;
    this.part("adding").hidden = isRunning;
    this.isStartFixed = isRunning;
    this.#showStartsNow();
  }

  get #startsNow() {
    return this.#changed === null && this.form.elements.starts_now.checked;
  }

  #showStartsNow() {
    if (this.#startsNow) this.start.set(this.calendar.now());
    this.start.input.disabled = this.#startsNow || this.isStartFixed;
    this.refresh();
  }

  /** GPUs by host, each host also as a whole. */
  #fillChoice() {
    const groups = new Map();
    for (const { gpu, host } of this.calendar.rows()) {
      if (!groups.has(host)) groups.set(host, element("optgroup", "", { label: host.name }));
      const text = `${gpuName({ gpu, host })} · ${modelText(gpu)}`;
      groups.get(host).append(element("option", "", { value: gpu.uuid }, text));
    }
    for (const [host, group] of groups) {
      const all = `All ${count(host.gpus.length, "GPU")} of ${host.name}`;
      if (host.gpus.length > 1) {
        group.prepend(element("option", "", { value: `host:${host.id}` }, all));
      }
    }
    this.part("choice").replaceChildren(...groups.values());
  }

  #add(value) {
    const added = this.calendar
      .rows()
      .filter(({ gpu, host }) => gpu.uuid === value || `host:${host.id}` === value)
      .map(({ gpu }) => gpu.uuid);
    this.#gpus = [...new Set([...this.#gpus, ...added])];
    this.#showGpus();
  }

  #remove(uuid, chip) {
    const next = chip.nextElementSibling ?? chip.previousElementSibling;
    this.#gpus = this.#gpus.filter((other) => other !== uuid);
    const position = next ? [...chip.parentNode.children].indexOf(next) : -1;
    this.#showGpus();
    const chips = this.part("gpus").querySelectorAll("button");
    (chips[Math.min(position, chips.length - 1)] ?? this.part("choice")).focus();
  }

  #showGpus() {
    const known = this.calendar.rows().filter(({ gpu }) => this.#gpus.includes(gpu.uuid));
    const unseen = this.#gpus.length - known.length;
    const chips = known.map((row) => this.#chip(row));
    if (unseen) chips.push(element("li", "cal-chip", {}, `${count(unseen, "GPU")} you cannot see`));
    this.part("gpus").replaceChildren(...chips);
    this.part("gpu-count").textContent = count(this.#gpus.length, "GPU");
    this.refresh();
  }

  #chip(row) {
    const name = gpuName(row);
    const chip = element("li", "cal-chip", { "data-chip": row.gpu.uuid }, element("span", "", {}, name));
    if (this.isStartFixed) return chip;
    const remove = element("button", "cal-chip-remove", { type: "button", "aria-label": `Remove ${name}` }, "×");
    remove.addEventListener("click", () => this.#remove(row.gpu.uuid, chip));
    chip.append(remove);
    return chip;
  }

  #wish() {
    const startsNow = this.#startsNow;
    const start = startsNow ? this.calendar.now() : this.start.get();
    return { gpus: this.#gpus, start, end: this.end.get(), startsNow };
  }

  /** Say again what stands against the wish, as far as the page knows. */
  refresh() {
    const wish = this.#wish();
    const isComplete = wish.start !== null && wish.end !== null;
    const problems = isComplete ? this.calendar.problems(wish, this.#changed) : [];
    const length = isComplete && wish.end > wish.start ? lengthText(wish.end - wish.start) : "–";
    this.part("length").textContent = length;
    this.part("problems").replaceChildren(
      ...shortened(problems).map((text) => element("li", "", {}, text)),
    );
    this.part("problems").hidden = problems.length === 0;
    if (isComplete) this.#markTaken(wish);
  }

  #markTaken(wish) {
    const others = this.calendar.reservations();
    for (const chip of this.part("gpus").querySelectorAll("[data-chip]")) {
      const one = { ...wish, gpus: [chip.dataset.chip] };
      const isTaken = conflictsOf(one, others, this.#changed?.id ?? null).length > 0;
      chip.classList.toggle("is-taken", isTaken);
    }
  }

  /** Wrong already here: nothing that the server would need to be asked about. */
  #ownErrors({ start, gpus }) {
    const errors = {};
    if (!this.form.elements.title.value.trim()) errors.title = ["Say what it is for."];
    if (start === null) errors.starts_at = [this.start.error];
    if (this.end.error) errors.ends_at = [this.end.error];
    if (gpus.length === 0) errors.gpus = ["Choose at least one GPU."];
    return errors;
  }

  async #submit() {
    const wish = this.#wish();
    const errors = this.#ownErrors(wish);
    this.#showErrors(errors);
    if (Object.keys(errors).length) return;
    this.part("submit").disabled = true;
    try {
      await this.calendar.save(this.#fields(wish), this.#changed);
      this.dialog.close();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#showErrors(error.fields, error.message);
    } finally {
      this.part("submit").disabled = false;
    }
  }

  /** The API's fields; of a change only those that differ. */
  #fields(wish) {
    const { title, description } = this.form.elements;
    const fields = {
      title: title.value.trim(),
      description: description.value.trim(),
      gpus: wish.gpus,
      starts_at: toApi(wish.start),
      ends_at: toApi(wish.end),
    };
    return this.#changed === null ? fields : changedFields(this.#changed, fields);
  }

  /** Sentences beside their fields; the general one, or those of unknown fields, on top. */
  #showErrors(fields, message = "") {
    let first = null;
    const placed = new Set();
    for (const slot of this.form.querySelectorAll("[data-error]")) {
      const name = slot.dataset.error;
      const text = (fields[name] ?? []).join(" ");
      slot.textContent = text;
      slot.hidden = !text;
      this.form.elements[name]?.setAttribute("aria-invalid", String(Boolean(text)));
      if (text) placed.add(name);
      if (text) first ??= this.form.elements[name];
    }
    const isAllPlaced = Object.keys(fields).every((name) => placed.has(name)) && placed.size > 0;
    this.part("error").textContent = isAllPlaced ? "" : message;
    this.part("error").hidden = isAllPlaced || !message;
    if (first) first.focus();
    else if (message) this.part("error").focus();
  }
}
