// The comparison of the text with another text, of the model with another model, or of both.

import { byId, el } from "./dom.js";
import { inputsOf } from "./pairs.js";
import { STRINGS } from "./strings.js";
import { around, difference } from "./text.js";

const MOST_CHANGED = 60; // UTF-16 units of a heading where the texts differ

export class Comparison {
  #button = byId("compare");
  #select = byId("other-model");
  #editor;
  #models;

  /** Calls `onChange()` when the visitor begins, changes or ends the comparison. */
  constructor(editor, models, onChange) {
    this.#editor = editor;
    this.#models = models;
    this.#button.addEventListener("click", () => {
      this.value = this.isOpen ? undefined : this.#first;
      if (this.isOpen) editor.other.area.focus();
      onChange();
    });
    this.#select.addEventListener("change", () => {
      this.#use();
      onChange();
    });
  }

  get isOpen() {
    return this.#button.getAttribute("aria-expanded") === "true";
  }

  /** The model of the other column. */
  get model() {
    return this.#models.served[this.#select.selectedIndex];
  }

  /** The text to compare with and its model, undefined without a comparison. An empty text means the same text. */
  get value() {
    return this.isOpen ? { text: this.#editor.other.text, model: this.model.name } : undefined;
  }

  /** Begin a comparison, or end it if the value is undefined. Without a model, it has the chosen model. */
  set value(value) {
    const { served, current } = this.#models;
    this.#button.setAttribute("aria-expanded", String(Boolean(value)));
    if (!value) {
      this.#editor.other.use({ isShown: false, maskToken: null });
      return;
    }
    this.#select.replaceChildren(...served.map(({ name }) => el("option", {}, name)));
    this.#select.hidden = served.length === 1;
    const found = served.findIndex(({ name }) => name === value.model);
    this.#select.selectedIndex = found < 0 ? served.indexOf(current) : found;
    this.#use();
    this.#editor.other.start(value.text);
  }

  /** The inputs of the other column. */
  get inputs() {
    const inOther = (text) => text.replaceAll(this.#models.current.mask_token, this.model.mask_token);
    const { text, second, other } = this.#editor;
    return inputsOf(other.text || inOther(text), inOther(second.text));
  }

  /** The headings of both columns, each with the `text` and the `model` as far as they differ. */
  get headings() {
    const { text, other } = this.#editor;
    const { current } = this.#models;
    const own = blanked(text, current);
    const texts = [own, other.text ? blanked(other.text, this.model) : own];
    const models = [current.name, this.model.name];
    const excerpts = texts[0] === texts[1] ? [] : excerptsOf(...texts);
    const names = models[0] === models[1] ? [] : models;
    if (!excerpts.length && !names.length) return [{ text: STRINGS.theText }, { text: STRINGS.theSameText }];
    return [0, 1].map((at) => ({ text: excerpts[at], model: names[at] }));
  }

  /** The first comparison: with another model if there is one, otherwise with a copy of the text. */
  get #first() {
    const { served, current } = this.#models;
    const another = served.find((one) => one !== current && one.tasks.some((task) => current.tasks.includes(task)));
    return another ? { text: "", model: another.name } : { text: this.#editor.text };
  }

  #use() {
    const { tasks, mask_token: maskToken } = this.model;
    this.#editor.other.use({ isShown: true, maskToken: tasks.includes("fill-mask") ? maskToken : null });
  }
}

const blanked = (text, { mask_token: maskToken }) => text.replaceAll(maskToken, "___");

/** Return the part of each text with the difference between the texts. */
function excerptsOf(first, second) {
  const { start, end, inserted } = difference(first, second);
  const ranges = [[first, start, end], [second, start, start + inserted.length]];
  return ranges.map(([text, from, to]) => {
    const [before, after] = around([from, to], text);
    return before + text.slice(from, Math.min(to, from + MOST_CHANGED)).toWellFormed() + after;
  });
}
