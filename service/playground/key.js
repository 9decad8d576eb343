// The visitor's API key: asked for where the service wants one, and kept here until the page goes.

import { byId, setAttribute } from "./dom.js";
import { showProblem } from "./problem.js";

const form = byId("key-form");
const field = byId("key");
const steps = new EventTarget();
let key = null;

form.addEventListener("submit", (event) => {
  event.preventDefault();
  key = field.value.trim();
  goOn();
});

/** The key, or null. */
export const currentKey = () => key;

/** Ask the visitor for a key, or for another one; settles when it is time to ask the service again. */
export function askForKey(signal) {
  const isFirst = key === null;
  const sentence = isFirst ? "An API key is needed. This page forgets it when it is closed." : "The API key is refused.";
  showProblem(byId("key-problem"), sentence, isFirst ? "notice" : "error");
  setAttribute(field, "aria-invalid", isFirst ? null : "true");
  form.hidden = false;
  // who is writing goes on writing
  if (!document.activeElement?.matches("input, select, textarea")) field.focus();
  return new Promise((resolve, reject) => {
    steps.addEventListener("go on", resolve, { once: true, signal });
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Put the form away, as a key is given or none is needed. */
export function goOn() {
  if (form.hidden) return;
  if (form.contains(document.activeElement)) byId("results-title").focus(); // the field goes
  field.value = "";
  form.hidden = true;
  showProblem(byId("key-problem"), null);
  steps.dispatchEvent(new Event("go on"));
}
