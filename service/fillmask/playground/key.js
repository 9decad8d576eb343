// The visitor's API key, which the page keeps until it is closed.

import { byId, setAttribute } from "./dom.js";
import { showProblem } from "./problem.js";
import { STRINGS } from "./strings.js";

const form = byId("key-form");
const field = byId("key");
const steps = new EventTarget();
let key = null;

form.addEventListener("submit", (event) => {
  event.preventDefault();
  key = field.value.trim();
  goOn();
});

/** Return the key, or null if the visitor has entered none. */
export const currentKey = () => key;

/** Ask the visitor for a key. The promise resolves when the page can send the request again. */
export function askForKey(signal) {
  const isFirst = key === null;
  showProblem(byId("key-problem"), isFirst ? STRINGS.needsKey : STRINGS.invalidKey, isFirst ? "notice" : "error");
  setAttribute(field, "aria-invalid", isFirst ? null : "true");
  form.hidden = false;
  // the focus stays in the text
  if (!document.activeElement?.matches("input, select, textarea")) field.focus();
  return new Promise((resolve, reject) => {
    steps.addEventListener("go on", resolve, { once: true, signal });
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Hide the form. */
export function goOn() {
  if (form.hidden) return;
  if (form.contains(document.activeElement)) byId("results-title").focus(); // the field disappears
  field.value = "";
  form.hidden = true;
  showProblem(byId("key-problem"), null);
  steps.dispatchEvent(new Event("go on"));
}
