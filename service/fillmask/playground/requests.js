// HTTP requests for a text and options.

import { partsOf } from "./pairs.js";
import { findMasks } from "./text.js";

export const DEFAULTS = {
  mode: "token", topK: 5, targets: [], maxWordTokens: 3, order: "confidence", windowed: false,
};

/**
 * Return the request to a model as `{path, body, kind, masks}`. The kind is "labels", "fills" or
 * "score". In fill modes, a text without masks is scored. The request omits the service's defaults,
 * except for the number of fills.
 *
 * @param inputs a text, or a pair as `{text, text_pair}`.
 */
export function requestFor(inputs, options, { name, isDefault, mask_token: maskToken }) {
  const masks = partsOf(inputs).reduce((sum, part) => sum + findMasks(part, maskToken).length, 0);
  const named = `models/${name.split("/").map(encodeURIComponent).join("/")}`;
  if (options.mode === "labels") {
    return { path: isDefault ? "classify" : `${named}/classify`, body: { inputs }, kind: "labels", masks };
  }
  if (masks === 0) return { path: isDefault ? "score" : `${named}/score`, body: { inputs }, kind: "score", masks };
  const path = isDefault ? "fill-mask" : named;
  return { path, body: { inputs, parameters: parametersOf(options) }, kind: "fills", masks };
}

/** Return a sentence if a model lacks the task of a mode, otherwise undefined. */
export function missingTask({ mode }, { name, tasks }) {
  const [task, lack] =
    mode === "labels"
      ? ["text-classification", "has no labels; choose another model or another result."]
      : ["fill-mask", "fills no masks; choose another model or another result."];
  return tasks.includes(task) ? undefined : `The model ${name} ${lack}`;
}

function parametersOf({ mode, topK, targets, maxWordTokens, order, windowed }) {
  const parameters = mode === "targets" ? { targets } : { top_k: topK };
  if (mode === "word") {
    parameters.granularity = "word";
    if (maxWordTokens !== DEFAULTS.maxWordTokens) parameters.max_word_tokens = maxWordTokens;
  }
  if (mode === "joint") {
    parameters.strategy = "joint";
    if (order !== DEFAULTS.order) parameters.order = order;
  }
  if (windowed) parameters.on_long_text = "window";
  return parameters;
}
