// Options of fills and labels, in a form. The modes exclude combinations that the service does not support.

import { byId, setAttribute } from "./dom.js";
import { KINDS, kindOf } from "./kinds.js";
import { whole } from "./numbers.js";
import { showProblem } from "./problem.js";
import { targetsOf } from "./requests.js";
import { STRINGS } from "./strings.js";

export class Options {
  #form = byId("options");
  #modes = [...this.#form.querySelectorAll("[name=mode]")];
  #topK = byId("top-k");
  #onChange;
  #defaults;

  /** Calls `onChange(typed)` with true for typing and false for other changes. */
  constructor(onChange) {
    this.#onChange = onChange;
    byId("max-word-tokens").append(...[1, 2, 3, 4, 5].map((n) => new Option(STRINGS.tokenCount(n), n, n === 3)));
    this.#form.reset();
    this.#defaults = this.value;
    this.#form.addEventListener("submit", (event) => event.preventDefault()); // by Enter in a field
    this.#form.addEventListener("input", ({ target }) => {
      this.#show();
      onChange(target === byId("targets") || target === this.#topK);
    });
    this.#show();
  }

  /** Show the modes and the limits of a model. If the chosen mode is missing, choose the model's first mode. */
  set model(model) {
    for (const one of this.#modes) {
      one.disabled = !KINDS[kindOf(one.value)].supports(model);
      one.parentElement.hidden = one.disabled;
    }
    const isFilling = model.tasks.length === 1 && model.tasks[0] === "fill-mask";
    byId("modes-legend").textContent = isFilling ? STRINGS.fillEachMask : STRINGS.result;
    byId("modes").hidden = this.#modes.filter(({ disabled }) => !disabled).length === 1;
    this.#topK.max = model.limits.max_top_k;
    byId("window-label").textContent = STRINGS.readAroundAbove(STRINGS.tokenCount(whole(model.limits.max_tokens)));
    this.#show();
  }

  /** The texts of all fields by their names. A box that is not ticked is missing. */
  get value() {
    return Object.fromEntries(new FormData(this.#form));
  }

  /** The options that are not the defaults. */
  get chosen() {
    return Object.fromEntries(Object.entries(this.value).filter(([name, value]) => value !== this.#defaults[name]));
  }

  /** Choose options, and the defaults of all others. Return the names of those that the form does not have. */
  choose(given) {
    this.#form.reset();
    const unread = Object.entries(given).filter(([name, value]) => !this.#set(name, value));
    this.#show();
    return unread.map(([name]) => name);
  }

  #set(name, value) {
    const fields = [...this.#form.querySelectorAll("[name]:enabled")].filter((one) => one.name === name);
    const field = fields.find((one) => one.value === value || !["radio", "checkbox"].includes(one.type));
    if (field?.type === "radio" || field?.type === "checkbox") field.checked = true;
    else if (field) field.value = value;
    return field?.value === value;
  }

  /** The reason why the options are invalid, undefined for valid options. */
  get problem() {
    const { mode, targets } = this.value;
    if (kindOf(mode) !== "fills") return undefined;
    if (mode === "targets") return targetsOf(targets).length ? undefined : STRINGS.noWordsToRank;
    if (this.#topK.checkValidity()) return undefined;
    return STRINGS.invalidFillsPerMask(this.#topK.max);
  }

  /** Choose to read long texts around their masks. */
  readAround() {
    this.#set("window", "true");
    this.#onChange(false);
  }

  #show() {
    if (!this.value.mode) this.#modes.find(({ disabled }) => !disabled).checked = true;
    const { mode } = this.value;
    byId("note").textContent = mode === "token" ? STRINGS.eachMaskAlone : KINDS[kindOf(mode)].note ?? "";
    byId("note").hidden = !byId("note").textContent;
    for (const detail of this.#form.querySelectorAll("[data-mode]")) detail.hidden = detail.dataset.mode !== mode;
    const isFilling = kindOf(mode) === "fills";
    byId("count").hidden = mode === "targets" || !isFilling;
    byId("windowing").hidden = !isFilling;
    byId("second-label").textContent = mode === "rank" ? STRINGS.textsToOrder : STRINGS.secondText;
    byId("second").placeholder = mode === "rank" ? STRINGS.oneTextPerLine : STRINGS.secondTextRead;
    // an empty list is not an error
    showProblem(byId("option-problem"), this.problem, mode === "targets" ? "hint" : "error");
    setAttribute(this.#topK, "aria-invalid", this.#topK.checkValidity() ? null : "true");
  }
}
