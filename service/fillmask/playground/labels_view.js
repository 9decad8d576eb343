// Labels, texts or words as bars with their scores.

import { el, setAttribute } from "./dom.js";

export class LabelsView {
  #list = el("ol", { class: "fills" });
  #rows = [];

  constructor() {
    this.root = el("div", { class: "lists gliding" }, el("div", { class: "list" }, this.#list));
  }

  /**
   * Show rows of `{words, share, value}`, best first. Rows without a share have no bars.
   *
   * @param name name of the list.
   */
  render(name, rows) {
    setAttribute(this.#list, "aria-label", name);
    while (this.#rows.length < rows.length) this.#rows.push(makeRow());
    this.#rows.length = rows.length;
    this.#rows.forEach((row, at) => {
      const { words, share, value } = rows[at];
      row.words.textContent = words;
      row.value.textContent = value;
      row.bar.hidden = share === undefined;
      row.bar.style.setProperty("--share", share ?? 0);
    });
    if (this.#list.children.length !== rows.length) {
      this.#list.replaceChildren(...this.#rows.map(({ item }) => item));
    }
  }

  /** Mark the labels as outdated. */
  set stale(stale) {
    this.root.classList.toggle("stale", stale);
  }
}

function makeRow() {
  const bar = el("span", { class: "bar", "aria-hidden": "true" });
  const words = el("span", { class: "words" });
  const value = el("span", { class: "value" });
  return { item: el("li", { class: "fill label" }, bar, words, " ", value), bar, words, value };
}
