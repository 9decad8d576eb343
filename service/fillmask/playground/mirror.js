// A copy of a text behind its text area, which draws the masks.

import { byId, el } from "./dom.js";
import { findMasks } from "./text.js";

export class Mirror {
  #element;
  #isNumbered;

  /**
   * @param id id of the element of the copy.
   * @param isNumbered whether the masks have numbers if there are several.
   */
  constructor(id, isNumbered) {
    this.#element = byId(id);
    this.#isNumbered = isNumbered;
  }

  /** Draw a text. Without a mask token the text has no masks. */
  draw(text, maskToken) {
    const masks = maskToken ? findMasks(text, maskToken) : [];
    const parts = [];
    let at = 0;
    masks.forEach(([start, end], index) => {
      const number = this.#isNumbered && masks.length > 1 ? index + 1 : undefined;
      parts.push(text.slice(at, start));
      parts.push(el("span", { class: "mask", "data-number": number }, maskToken));
      at = end;
    });
    // a final line break starts a line only if a character follows
    this.#element.replaceChildren(...parts, text.slice(at), "\u200b");
  }

  /** Highlight a mask, or no mask if the index is null. */
  point(index) {
    this.#element.querySelectorAll(".mask").forEach((mask, at) => {
      mask.classList.toggle("pointed", at === index);
    });
  }
}
