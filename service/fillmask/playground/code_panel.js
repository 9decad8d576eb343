// The request as code, in tabs with a copy button.

import { address } from "./api.js";
import { copy } from "./clipboard.js";
import { byId, setAttribute } from "./dom.js";
import { currentKey } from "./key.js";
import { roving } from "./roving.js";
import { snippets } from "./snippets.js";

export class CodePanel {
  #tabs = [...byId("languages").children];
  #snippet = byId("snippet");
  #language = "curl";
  #code = null;

  /** Calls `say(sentence)` for announcements to screen readers. */
  constructor(say) {
    const tabs = roving(byId("languages"), "[role=tab]", { onMove: (tab) => this.#select(tab) });
    tabs.refresh();
    for (const tab of this.#tabs) tab.addEventListener("click", () => this.#select(tab));
    this.show(null);
    byId("copy").addEventListener("click", () => copy(this.#snippet.textContent, byId("copy"), say));
  }

  /** Show a request as code, or clear the panel if the request is null. */
  show(request) {
    this.#code = request && snippets(address(request.path), request, { withKey: currentKey() !== null });
    this.#draw();
  }

  #select(tab) {
    this.#language = tab.id.replace("tab-", "");
    for (const one of this.#tabs) {
      setAttribute(one, "aria-selected", String(one === tab));
      one.tabIndex = one === tab ? 0 : -1;
    }
    setAttribute(this.#snippet, "aria-labelledby", tab.id);
    this.#draw();
  }

  #draw() {
    const code = this.#code?.[this.#language] ?? "";
    if (this.#snippet.textContent !== code) this.#snippet.textContent = code;
    byId("copy").disabled = !code;
  }
}
