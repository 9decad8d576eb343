// How masks are to be filled. One choice of four excludes what the service does not do together.

import { byId, setAttribute } from "./dom.js";
import { whole } from "./numbers.js";
import { showProblem } from "./problem.js";
import { DEFAULTS } from "./requests.js";

export class Options {
  #root = byId("options");
  #topK = byId("top-k");
  #targets = byId("targets");

  /** `onChange(typed)`, as of the text. */
  constructor(onChange) {
    this.#root.addEventListener("input", ({ target }) => {
      this.#show();
      onChange(target === this.#targets || target === this.#topK);
    });
    this.#show();
  }

  /** What the model and the server allow. */
  limit({ max_top_k: maxTopK, max_tokens: maxTokens }) {
    this.#topK.max = maxTopK;
    byId("windowed-limit").textContent = `${whole(maxTokens)} tokens`;
    this.#show();
  }

  /** As they are chosen. */
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

  /** Choose; what is not given is as it is at first. */
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

  /** Why nothing can be asked with them, or undefined. */
  get problem() {
    const { mode, targets } = this.value;
    if (mode === "targets") return targets.length ? undefined : "Write the words to rank, commas between them.";
    if (this.#topK.checkValidity()) return undefined;
    return `Fills a mask: a whole number from 1 to ${this.#topK.max}.`;
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
    // to have written no words yet is no mistake
    showProblem(byId("option-problem"), this.problem, isRanking ? "hint" : "error");
    setAttribute(this.#topK, "aria-invalid", this.#topK.checkValidity() ? null : "true");
  }
}
