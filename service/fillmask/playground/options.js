// Options of fills and labels. The modes exclude combinations that the service does not support.

import { byId, setAttribute } from "./dom.js";
import { OTHER_MODES, supports } from "./modes.js";
import { whole } from "./numbers.js";
import { showProblem } from "./problem.js";
import { DEFAULTS } from "./requests.js";
import { STRINGS } from "./strings.js";

export class Options {
  #root = byId("options");
  #topK = byId("top-k");
  #targets = byId("targets");
  #onChange;

  /** Calls `onChange(typed)` with true for typing and false for other changes. */
  constructor(onChange) {
    this.#onChange = onChange;
    for (const one of byId("max-word-tokens").options) one.textContent = STRINGS.tokenCount(one.value);
    this.#root.addEventListener("input", ({ target }) => {
      this.#show();
      onChange(target === this.#targets || target === this.#topK);
    });
    this.#show();
  }

  /** Set the limits of the model and the server. */
  limit({ max_top_k: maxTopK, max_tokens: maxTokens }) {
    this.#topK.max = maxTopK;
    byId("windowed-limit").textContent = STRINGS.tokenCount(whole(maxTokens));
    this.#show();
  }

  /** Show the modes of a model. If the chosen mode is missing, choose the model's first mode. */
  set model(model) {
    const modes = [...this.#root.querySelectorAll("[name=mode]")];
    for (const one of modes) {
      one.disabled = !supports(one.value, model);
      one.parentElement.hidden = one.disabled;
    }
    const isFilling = model.tasks.length === 1 && model.tasks[0] === "fill-mask";
    byId("modes-legend").textContent = isFilling ? STRINGS.fillEachMask : STRINGS.result;
    byId("modes").hidden = modes.filter(({ disabled }) => !disabled).length === 1;
    if (!this.allows(this.#mode)) this.#first.checked = true;
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
    const chosen = this.#root.querySelector(`[name=mode][value=${mode}]`);
    (chosen.disabled ? this.#first : chosen).checked = true;
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
    if (mode in OTHER_MODES) return undefined;
    if (mode === "targets") return targets.length ? undefined : STRINGS.noWordsToRank;
    if (this.#topK.checkValidity()) return undefined;
    return STRINGS.invalidFillsPerMask(this.#topK.max);
  }

  /** Choose to read long texts around their masks. */
  readAround() {
    byId("windowed").checked = true;
    this.#onChange(false);
  }

  /** The first mode of the model. */
  get #first() {
    return this.#root.querySelector("[name=mode]:enabled");
  }

  get #mode() {
    return this.#root.querySelector("[name=mode]:checked").value;
  }

  #show() {
    for (const detail of this.#root.querySelectorAll("[data-mode]")) {
      detail.hidden = detail.dataset.mode !== this.#mode;
    }
    const isRanking = this.#mode === "targets";
    const isFilling = !(this.#mode in OTHER_MODES);
    byId("count").hidden = isRanking || !isFilling;
    byId("windowing").hidden = !isFilling;
    const isOrdering = this.#mode === "rank";
    byId("second-label").textContent = isOrdering ? STRINGS.textsToOrder : STRINGS.secondText;
    byId("second").placeholder = isOrdering ? STRINGS.oneTextPerLine : STRINGS.secondTextRead;
    // an empty list is not an error
    showProblem(byId("option-problem"), this.problem, isRanking ? "hint" : "error");
    setAttribute(this.#topK, "aria-invalid", this.#topK.checkValidity() ? null : "true");
  }
}
