// A field of a text with masks. A mirror, the same text behind the text area, draws the masks.

import { byId, edit, el, setAttribute } from "./dom.js";
import { difference, findMasks, maskingAt } from "./text.js";

export class TextField {
  area;
  isShown = false;
  #part;
  #mirror;
  #isNumbered;
  #maskToken = null; // of the latest model that fills masks
  #mayMask = false;
  #isInserting = false;
  #onChange;

  /**
   * Calls `onChange(typed)` with true for typing and false for an edit by the page.
   *
   * @param id id of the text area. The element `id`-part, if there is one, may be hidden.
   * @param isNumbered whether the masks have numbers if there are several.
   */
  constructor(id, isNumbered, onChange) {
    this.#part = byId(`${id}-part`);
    this.area = byId(id);
    this.#mirror = el("div", { class: "mirror", id: `${id}-mirror`, "aria-hidden": "true" });
    const surface = el("div", { class: "surface" });
    this.area.replaceWith(surface);
    surface.append(this.#mirror, this.area);
    this.#isNumbered = isNumbered;
    this.#onChange = onChange;
    this.area.addEventListener("input", () => {
      if (!this.#isInserting) this.#changed(true);
    });
    // typing replaces the mask of a double click
    this.area.addEventListener("dblclick", () => {
      const { selectionStart, selectionEnd } = this.area;
      if (!this.area.value.slice(selectionStart, selectionEnd).trim()) return;
      if (this.masking) this.mask();
      else if (this.#mayMask) this.#selectMask(selectionStart);
    });
  }

  /** The text, empty if the field is hidden or has only white space. */
  get text() {
    return this.isShown && this.area.value.trim() ? this.area.value : "";
  }

  /** Mark the text as invalid or valid. */
  set invalid(invalid) {
    setAttribute(this.area, "aria-invalid", invalid ? "true" : null);
  }

  /** Set the initial text. Undo does not remove this text. */
  start(text) {
    this.area.value = text;
    this.#draw();
  }

  /**
   * Show or hide the field. The mask token of the model replaces the previous mask token in the text.
   * The token is null for a model that fills no masks.
   */
  use({ isShown, maskToken }) {
    this.isShown = isShown;
    if (this.#part) this.#part.hidden = !isShown;
    this.#mayMask = maskToken !== null;
    const { value } = this.area;
    const text = this.#maskToken && maskToken ? value.replaceAll(this.#maskToken, maskToken) : value;
    if (text !== value) this.area.value = text;
    this.#maskToken = maskToken ?? this.#maskToken;
    this.#draw();
  }

  /** Replace the text and return the end of the change. The browser's undo reverts the change. */
  replace(text) {
    const { start, end, inserted } = difference(this.area.value, text);
    this.#insert(start, end, inserted);
    return start + inserted.length;
  }

  /** The edit that masks the selection or the word at the caret, null without masking. */
  get masking() {
    if (!this.#mayMask) return null;
    const { value, selectionStart, selectionEnd } = this.area;
    return maskingAt(value, selectionStart, selectionEnd, this.#maskToken);
  }

  /** Mask the selection or the word at the caret, and select the mask. */
  mask() {
    const plan = this.masking;
    if (!plan) return;
    this.#insert(plan.start, plan.end, plan.inserted);
    this.#selectMask(plan.start);
  }

  #draw() {
    const { value } = this.area;
    const masks = this.#mayMask ? findMasks(value, this.#maskToken) : [];
    const parts = [];
    let at = 0;
    masks.forEach(([start, end], index) => {
      const number = this.#isNumbered && masks.length > 1 ? index + 1 : undefined;
      parts.push(value.slice(at, start), el("span", { class: "mask", "data-number": number }, this.#maskToken));
      at = end;
    });
    // a final line break starts a line only if a character follows
    this.#mirror.replaceChildren(...parts, value.slice(at), "\u200b");
  }

  /** Select the mask at an offset, or the first mask after the offset. */
  #selectMask(at) {
    const mask = findMasks(this.area.value, this.#maskToken).find(([, end]) => end > at);
    if (mask) this.area.setSelectionRange(...mask);
  }

  #insert(start, end, inserted) {
    if (start === end && !inserted) return;
    this.#isInserting = true;
    this.area.setSelectionRange(start, end);
    const isDone = edit(this.area, inserted ? "insertText" : "delete", inserted);
    if (!isDone) this.area.setRangeText(inserted, start, end, "end");
    this.#isInserting = false;
    this.#changed(false);
  }

  #changed(typed) {
    this.#draw();
    this.#onChange(typed);
  }
}
