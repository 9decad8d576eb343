// Options of fills and labels. The modes exclude combinations that the service does not support.

import { byId, setAttribute } from "./dom.js";
import { whole } from "./numbers.js";
import { showProblem } from "./problem.js";
import { DEFAULTS } from "./requests.js";

export class Options {
  #root = byId("options");
  #topK = byId("top-k");
  #targets = byId("targets");
  #onChange;

  /** Calls `onChange(typed)` with true for typing and false for other changes. */
  constructor(onChange) {
    this.#onChange = onChange;
    this.#root.addEventListener("input", ({ target }) => {
      this.#show();
      onChange(target === this.#targets || target === this.#topK);
    });
    this.#show();
  }

  /** Set the limits of the model and the server. */
  limit({ max_top_k: maxTopK, max_tokens: maxTokens }) {
    this.#topK.max = maxTopK;
    byId("windowed-limit").textContent = `${whole(maxTokens)} tokens`;
    this.#show();
  }

  /** Show the modes of a model's tasks. If the chosen mode is missing, choose the model's first mode. */
  set tasks(tasks) {
    const fills = tasks.includes("fill-mask");
    const modes = [...this.#root.querySelectorAll("[name=mode]")];
    for (const one of modes) {
      one.disabled = one.value === "labels" ? !tasks.includes("text-classification") : !fills;
      one.parentElement.hidden = one.disabled;
    }
    byId("modes-legend").textContent = tasks.length === 1 ? "Fill each mask with" : "Result";
    byId("modes").hidden = tasks.length === 1 && !fills;
    if (!this.allows(this.#mode)) modes.find(({ disabled }) => !disabled).checked = true;
    this.#show();
  }

  /** Return whether the model has a mode. */
  allows(mode) {
    return !this.#root.querySelector(`[name=mode][value=${mode}]`).disabled;
  }

  /** The chosen options. */
  get value() {
    return {
      mode: this.#mode,
      topK: this.#topK.valueAsNumber,
      targets: this.#targets.value.split(",").map((one) => one.trim()).filter(Boolean),
      maxWordTokens: Number(byId("max-word-tokens").value),
      order: byId("order").value,
      windowed: byId("windowed").checked,
    };
  }

  /** Choose options. Missing options get their defaults. */
  set value(given) {
    const { mode, topK, targets, maxWordTokens, order, windowed } = { ...DEFAULTS, ...given };
    const chosen = [mode, DEFAULTS.mode, "labels"].find((one) => this.allows(one));
    this.#root.querySelector(`[name=mode][value=${chosen}]`).checked = true;
    this.#topK.value = topK;
    this.#targets.value = targets.join(", ");
    byId("max-word-tokens").value = maxWordTokens;
    byId("order").value = order;
    byId("windowed").checked = windowed;
    this.#show();
  }

  /** The reason why the options are invalid, undefined for valid options. */
  get problem() {
    const { mode, targets } = this.value;
    if (mode === "labels") return undefined;
    if (mode === "targets") return targets.length ? undefined : "Write the words to rank, separated by commas.";
    if (this.#topK.checkValidity()) return undefined;
    return `Fills per mask must be a whole number from 1 to ${this.#topK.max}.`;
  }

  /** Choose to read long texts around their masks. */
  readAround() {
    byId("windowed").checked = true;
    this.#onChange(false);
  }

  get #mode() {
    return this.#root.querySelector("[name=mode]:checked").value;
  }

  #show() {
    for (const detail of this.#root.querySelectorAll("[data-mode]")) {
      detail.hidden = detail.dataset.mode !== this.#mode;
    }
    const isRanking = this.#mode === "targets";
    const isLabelling = this.#mode === "labels";
    byId("count").hidden = isRanking || isLabelling;
    byId("windowing").hidden = isLabelling;
    // an empty list is not an error
    showProblem(byId("option-problem"), this.problem, isRanking ? "hint" : "error");
    setAttribute(this.#topK, "aria-invalid", this.#topK.checkValidity() ? null : "true");
  }
}
