// The request as code in one of three languages, with a copy button.

import { address } from "./api.js";
import { copy } from "./clipboard.js";
import { byId } from "./dom.js";
import { currentKey } from "./key.js";
import { snippets } from "./snippets.js";

export class CodePanel {
  #languages = byId("languages");
  #snippet = byId("snippet");
  #code = null;

  /** Calls `say(sentence)` for announcements to screen readers. */
  constructor(say) {
    this.#languages.addEventListener("change", () => this.#draw());
    byId("copy").addEventListener("click", () => copy(this.#snippet.textContent, byId("copy"), say));
    this.show(null);
  }

  /** Show a request as code, or clear the panel if the request is null. */
  show(request) {
    this.#code = request && snippets(address(request.path), request, { withKey: currentKey() !== null });
    this.#draw();
  }

  #draw() {
    const code = this.#code?.[this.#languages.querySelector(":checked").value] ?? "";
    if (this.#snippet.textContent !== code) this.#snippet.textContent = code;
    byId("copy").disabled = !code;
  }
}
