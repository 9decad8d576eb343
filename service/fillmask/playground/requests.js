// HTTP requests for a text and options.

import { partsOf } from "./pairs.js";
import { findMasks } from "./text.js";

export const DEFAULTS = {
  mode: "token", topK: 5, targets: [], maxWordTokens: 3, order: "confidence", windowed: false,
};

const MOST_WORDS = 50; // of a sparse vector

/**
 * Return the request to a model as `{path, body, kind, masks}`. The kind is "labels", "rank", "words",
 * "fills" or "score". In fill modes, a text without masks is scored. The request omits the service's defaults,
 * except for the number of fills.
 *
 * @param inputs a text, or a pair as `{text, text_pair}`.
 */
export function requestFor(inputs, options, { name, isDefault, mask_token: maskToken }) {
  const masks = partsOf(inputs).reduce((sum, part) => sum + findMasks(part, maskToken).length, 0);
  const named = `models/${name.split("/").map(encodeURIComponent).join("/")}`;
  const own = (task) => (isDefault ? task : `${named}/${task}`);
  const [first, second] = partsOf(inputs);
  switch (options.mode) {
    case "labels":
      return { path: own("classify"), body: { inputs }, kind: "labels", masks };
    case "rank":
      return { path: own("rerank"), body: rankBody(first, second), kind: "rank", masks };
    case "words":
      return { path: own("embed_sparse"), body: wordsBody(first), kind: "words", masks };
  }
  if (masks === 0) return { path: own("score"), body: { inputs }, kind: "score", masks };
  const path = isDefault ? "fill-mask" : named;
  return { path, body: { inputs, parameters: parametersOf(options) }, kind: "fills", masks };
}

const wordsBody = (inputs) => ({ inputs, format: "tokens", top_n: MOST_WORDS });
const rankBody = (query, second) => ({ query, texts: linesOf(second) });

/** Return the lines of a text that are not blank. */
export const linesOf = (text = "") => text.split("\n").filter((line) => line.trim());

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
