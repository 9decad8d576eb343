// The models that are served, and the one that is asked.

import { byId, el } from "./dom.js";

export class Models {
  #served = [];
  #default;
  #select = el("select", { "aria-label": "Model" });

  /** `onChange()` when the visitor has chosen another one. */
  constructor(onChange) {
    this.#select.addEventListener("change", onChange);
  }

  /** Show them, as the service tells of each; several are to choose from. The default is chosen. */
  show(served, defaultName) {
    this.#served = served.map((one) => ({ ...one, isDefault: one.name === defaultName }));
    this.#default = this.#served.find(({ isDefault }) => isDefault) ?? this.#served[0];
    this.#select.replaceChildren(...served.map(({ name }) => el("option", {}, name)));
    byId("model-name").replaceChildren(served.length > 1 ? this.#select : defaultName);
    this.choose();
  }

  /** Choose the one of a name, or else the default; gives whether there is one of that name. */
  choose(name = this.#default.name) {
    const found = this.#served.findIndex((one) => one.name === name);
    this.#select.selectedIndex = found < 0 ? this.#served.indexOf(this.#default) : found;
    return found >= 0;
  }

  /** The one that is chosen; undefined until they are shown. */
  get current() {
    return this.#served[this.#select.selectedIndex];
  }
}
