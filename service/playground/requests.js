// HTTP requests for a text and options.

import { findMasks } from "./text.js";

export const DEFAULTS = {
  mode: "token", topK: 5, targets: [], maxWordTokens: 3, order: "confidence", windowed: false,
};

/**
 * Return the request to a model as `{path, body, masks}`. A text without masks is scored. The
 * request omits the service's defaults, except for the number of fills.
 */
export function requestFor(text, options, { name, isDefault, mask_token: maskToken }) {
  const masks = findMasks(text, maskToken).length;
  const named = `models/${name.split("/").map(encodeURIComponent).join("/")}`;
  if (masks === 0) return { path: isDefault ? "score" : `${named}/score`, body: { inputs: text }, masks };
  const path = isDefault ? "fill-mask" : named;
  return { path, body: { inputs: text, parameters: parametersOf(options) }, masks };
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
