// A list of bars. Its elements stay when its rows change, so that the bars glide to their new lengths.

import { el, setAttribute, tint } from "./dom.js";

export class Bars {
  root = el("ol", { class: "fills" });
  none = el("p", { class: "quiet" });
  #rows = [];
  #areButtons;

  /** @param areButtons whether visitors can choose a row, which then is a button. */
  constructor({ areButtons }) {
    this.#areButtons = areButtons;
  }

  /** The elements of the rows. */
  get elements() {
    return this.#rows.map(({ element }) => element);
  }

  /**
   * Show rows of `{words, note, hue, share, value, isCurrent}`. Rows without a share have no bars.
   *
   * @param name name of the list.
   * @param none sentence in place of an empty list.
   */
  render(name, rows, none) {
    setAttribute(this.root, "aria-label", name);
    this.none.textContent = none;
    this.none.hidden = rows.length > 0;
    while (this.#rows.length < rows.length) this.#rows.push(this.#makeRow());
    this.#rows.length = rows.length;
    rows.forEach(({ words, note = "", hue, share, value, isCurrent }, at) => {
      const row = this.#rows[at];
      row.words.replaceChildren(...words.flatMap((word) => [el("span", {}, word), " "]));
      row.note.textContent = note;
      tint(row.note, hue);
      row.value.textContent = value;
      row.bar.hidden = share === undefined;
      row.bar.style.setProperty("--share", share ?? 0);
      setAttribute(row.element, "aria-current", isCurrent ? "true" : null);
    });
    if (this.root.children.length === rows.length) return;
    this.root.replaceChildren(...this.elements.map((one) => (this.#areButtons ? el("li", {}, one) : one)));
  }

  #makeRow() {
    const bar = el("span", { class: "bar", "aria-hidden": "true" });
    const words = el("span", { class: "words" });
    const note = el("span", { class: "note quiet" });
    const value = el("span", { class: "value" });
    const element = this.#areButtons
      ? el("button", { type: "button", class: "fill", tabindex: "-1" }, bar, words, note, value)
      : el("li", { class: "fill label" }, bar, words, note, value);
    return { element, bar, words, note, value };
  }
}
