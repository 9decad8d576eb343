// A text with its entities marked. Arrow keys move between the marks.

import { el, tint } from "./dom.js";
import { joinedPieces } from "./pairs.js";
import { roving } from "./roving.js";
import { STRINGS } from "./strings.js";

export class MarkedText {
  root = el("div", { class: "tokens", role: "group", "aria-label": STRINGS.textWithEntities });
  #roving = roving(this.root, "mark");

  /**
   * Show a text or a pair.
   *
   * @param entities from the service, which counts characters.
   * @param rows the `note`, the `value` and the `hue` of each entity.
   */
  render(inputs, entities, rows) {
    const marked = entities.map((entity, at) => ({ ...entity, ...rows[at] }));
    const parts = joinedPieces(inputs, marked).map(({ text, tokens }) => (tokens ? mark(text, tokens[0]) : text));
    this.root.replaceChildren(...parts);
    this.#roving.refresh();
  }
}

function mark(text, { note, value, hue }) {
  const element = el("mark", { tabindex: "-1", title: value, "data-label": note }, text);
  tint(element, hue);
  return element;
}
