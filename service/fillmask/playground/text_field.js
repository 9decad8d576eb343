// A field of another text with masks, such as the second text of a pair.

import { byId, insertInto } from "./dom.js";
import { Mirror } from "./mirror.js";
import { difference, findMasks, maskingAt } from "./text.js";

export class TextField {
  #part;
  #area;
  #mirror;
  #maskToken = null; // of the latest model that fills masks
  #mayMask = false;
  #isShown = false;
  #isInserting = false;
  #onChange;

  /**
   * Calls `onChange(typed)` with true for typing and false for other changes.
   *
   * @param id id of the text area. The elements `id`-part and `id`-mirror belong to it.
   * @param isNumbered whether the masks have numbers if there are several.
   */
  constructor(id, isNumbered, onChange) {
    this.#part = byId(`${id}-part`);
    this.#area = byId(id);
    this.#mirror = new Mirror(`${id}-mirror`, isNumbered);
    this.#onChange = onChange;
    this.#area.addEventListener("input", () => {
      if (!this.#isInserting) this.#changed(true);
    });
    this.#area.addEventListener("dblclick", () => {
      const { selectionStart, selectionEnd } = this.#area;
      if (this.#area.value.slice(selectionStart, selectionEnd).trim()) this.mask();
    });
  }

  /** The text, empty if the field is hidden or has only white space. */
  get text() {
    return this.#isShown && this.#area.value.trim() ? this.#area.value : "";
  }

  get area() {
    return this.#area;
  }

  get isShown() {
    return this.#isShown;
  }

  /** Set the initial text. */
  start(text) {
    this.#area.value = text;
    this.#draw();
  }

  /**
   * Show or hide the field. The mask token of the model replaces the previous mask token in the text.
   * The token is null for a model that fills no masks.
   */
  use({ isShown, maskToken }) {
    this.#isShown = isShown;
    this.#part.hidden = !isShown;
    this.#mayMask = maskToken !== null;
    if (this.#mayMask) {
      if (this.#maskToken) this.#area.value = this.#area.value.replaceAll(this.#maskToken, maskToken);
      this.#maskToken = maskToken;
    }
    this.#draw();
  }

  /** Replace the text and return the end of the change. The browser's undo reverts the change. */
  replace(text) {
    const { start, end, inserted } = difference(this.#area.value, text);
    this.#insert(start, end, inserted);
    return start + inserted.length;
  }

  /** The edit that masks the selection or the word at the caret, null without masking. */
  get masking() {
    if (!this.#mayMask) return null;
    const { value, selectionStart, selectionEnd } = this.#area;
    return maskingAt(value, selectionStart, selectionEnd, this.#maskToken);
  }

  /** Mask the selection or the word at the caret, and select the mask. */
  mask() {
    const plan = this.masking;
    if (!plan) return;
    this.#insert(plan.start, plan.end, plan.inserted);
    const mask = findMasks(this.#area.value, this.#maskToken).find(([, end]) => end > plan.start);
    if (mask) this.#area.setSelectionRange(...mask);
  }

  /** Highlight a mask, or no mask if the index is null. */
  point(index) {
    this.#mirror.point(index);
  }

  #insert(start, end, inserted) {
    if (start === end && !inserted) return;
    this.#isInserting = true;
    insertInto(this.#area, start, end, inserted);
    this.#isInserting = false;
    this.#changed(false);
  }

  #changed(typed) {
    this.#draw();
    this.#onChange(typed);
  }

  #draw() {
    this.#mirror.draw(this.#area.value, this.#mayMask ? this.#maskToken : null);
  }
}
