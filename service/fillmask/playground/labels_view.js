// Labels of a text as bars with their scores.

import { el } from "./dom.js";
import { percent, score } from "./numbers.js";

export class LabelsView {
  #list = el("ol", { class: "fills", "aria-label": "Labels" });
  #rows = [];

  constructor() {
    this.root = el("div", { class: "lists gliding" }, el("div", { class: "list" }, this.#list));
  }

  /**
   * Show labels.
   *
   * @param labels labels with scores, best first.
   * @param areLogits whether the scores are logits, which have no bars.
   * @return the best label with its score, as a text.
   */
  render(labels, areLogits) {
    const written = areLogits ? score : percent;
    while (this.#rows.length < labels.length) this.#rows.push(makeRow());
    this.#rows.length = labels.length;
    this.#rows.forEach(({ bar, words, value }, at) => {
      const label = labels[at];
      words.textContent = label.label;
      value.textContent = written(label.score);
      bar.hidden = areLogits;
      bar.style.setProperty("--share", areLogits ? 0 : label.score);
    });
    if (this.#list.children.length !== labels.length) {
      this.#list.replaceChildren(...this.#rows.map(({ item }) => item));
    }
    return `${labels[0].label}, ${written(labels[0].score)}`;
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
