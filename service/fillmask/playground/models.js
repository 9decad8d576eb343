// The served models, the visitor's choice and its limits.

import { byId, el } from "./dom.js";
import { whole } from "./numbers.js";
import { STRINGS } from "./strings.js";

export class Models {
  /** All served models, empty before `show`. */
  served = [];
  #default;
  #select = el("select", { "aria-label": STRINGS.model });

  /** Calls `onChange()` when the visitor chooses another model. */
  constructor(onChange) {
    this.#select.addEventListener("change", onChange);
  }

  /** Show the models and choose the default. Several models appear as a selection. */
  show(served, defaultName) {
    this.served = served.map((one) => ({ ...one, isDefault: one.name === defaultName }));
    this.#default = this.served.find(({ isDefault }) => isDefault) ?? this.served[0];
    this.#select.replaceChildren(...served.map(({ name }) => el("option", {}, name)));
    byId("model-name").replaceChildren(served.length > 1 ? this.#select : defaultName);
    this.choose();
  }

  /** Choose a model by name, or the default. Return whether the name exists. */
  choose(name = this.#default.name) {
    const found = this.served.findIndex((one) => one.name === name);
    this.#select.selectedIndex = found < 0 ? this.served.indexOf(this.#default) : found;
    return found >= 0;
  }

  /** The chosen model, undefined before `show`. */
  get current() {
    return this.served[this.#select.selectedIndex];
  }
}

export function showFacts({ precision, description, license, limits, architecture, version, labels }) {
  byId("model-precision").textContent = precision;
  byId("description").textContent = description;
  const facts = {
    [STRINGS.parameters]: whole(architecture.parameters),
    [STRINGS.vocabulary]: STRINGS.tokenCount(whole(architecture.vocab_size)),
    [STRINGS.maxTextLength]: STRINGS.tokenCount(whole(limits.max_tokens)),
    ...(labels && { [STRINGS.labels]: whole(labels.length) }),
    [STRINGS.licence]: license,
    fillmask: version,
  };
  byId("facts").replaceChildren(
    ...Object.entries(facts).map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value))),
  );
}
