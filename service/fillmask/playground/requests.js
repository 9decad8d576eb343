// HTTP requests for a text and options.

import { KINDS, kindOf } from "./kinds.js";
import { partsOf } from "./pairs.js";
import { findMasks } from "./text.js";

/**
 * Return the request to a model as `{path, body, kind, masks}`. If the options ask for fills, a text without
 * masks is scored. The request omits the service's defaults, except for the number of fills.
 *
 * @param inputs a text, or a pair as `{text, text_pair}`.
 * @param options the texts of the fields in the form, by the names of the fields.
 */
export function requestFor(inputs, options, { name, isDefault, mask_token: maskToken }) {
  const parts = partsOf(inputs);
  const masks = parts.reduce((sum, part) => sum + findMasks(part, maskToken).length, 0);
  const named = `models/${name.split("/").map(encodeURIComponent).join("/")}`;
  const own = (task) => (isDefault ? task : `${named}/${task}`);
  const kind = kindOf(options.mode);
  if (kind !== "fills") return { path: own(KINDS[kind].task), body: KINDS[kind].body(parts, inputs), kind, masks };
  if (masks === 0) return { path: own("score"), body: { inputs }, kind: "score", masks };
  const path = isDefault ? "fill-mask" : named;
  return { path, body: { inputs, parameters: parametersOf(options) }, kind, masks };
}

function parametersOf({ mode, top_k: topK, targets, max_word_tokens: maxWordTokens, order, window }) {
  const parameters = mode === "targets" ? { targets: targetsOf(targets) } : { top_k: Number(topK) };
  if (mode === "word") {
    parameters.granularity = "word";
    if (maxWordTokens !== "3") parameters.max_word_tokens = Number(maxWordTokens);
  }
  if (mode === "joint") {
    parameters.strategy = "joint";
    if (order !== "confidence") parameters.order = order;
  }
  if (window) parameters.on_long_text = "window";
  return parameters;
}

/** Return the targets in a text, separated by commas. */
export const targetsOf = (text) => text.split(",").map((one) => one.trim()).filter(Boolean);
