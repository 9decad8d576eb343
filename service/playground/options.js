// Options of fills. The four modes exclude combinations that the service does not support.

import { byId, setAttribute } from "./dom.js";
import { whole } from "./numbers.js";
import { showProblem } from "./problem.js";
import { DEFAULTS } from "./requests.js";

export class Options {
  #root = byId("options");
  #topK = byId("top-k");
  #targets = byId("targets");

  /** Calls `onChange(typed)` with true for typing and false for other changes. */
  constructor(onChange) {
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
    this.#root.querySelector(`[name=mode][value=${mode}]`).checked = true;
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
    if (mode === "targets") return targets.length ? undefined : "Write the words to rank, separated by commas.";
    if (this.#topK.checkValidity()) return undefined;
    return `Fills per mask must be a whole number from 1 to ${this.#topK.max}.`;
  }

  get #mode() {
    return this.#root.querySelector("[name=mode]:checked").value;
  }

  #show() {
    for (const detail of this.#root.querySelectorAll("[data-mode]")) {
      detail.hidden = detail.dataset.mode !== this.#mode;
    }
    const isRanking = this.#mode === "targets";
    byId("count").hidden = isRanking;
    // an empty list is not an error
    showProblem(byId("option-problem"), this.problem, isRanking ? "hint" : "error");
    setAttribute(this.#topK, "aria-invalid", this.#topK.checkValidity() ? null : "true");
  }
}
