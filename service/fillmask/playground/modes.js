// What the modes need of a model, and what the page says without a text.

import { STRINGS } from "./strings.js";

/** The kind of the result of each mode that fills no masks, with the sentence in place of a result. */
export const OTHER_MODES = {
  rank: { kind: "rank", empty: STRINGS.emptyOrder },
  labels: { kind: "labels", empty: STRINGS.emptyLabels },
  words: { kind: "words", empty: STRINGS.emptyWords },
};

/** Return the kind of the result of a mode and the sentence in place of a result. */
export const modeOf = (mode) => OTHER_MODES[mode] ?? { kind: "fills", empty: STRINGS.emptyFills };

/** Return whether a model has what a mode needs. */
export function supports(mode, { tasks, labels, pairs }) {
  if (mode === "labels") return tasks.includes("text-classification");
  if (mode === "rank") return Boolean(pairs) && labels?.length === 1;
  return tasks.includes(mode === "words" ? "sparse" : "fill-mask");
}

/** Return a sentence if a model lacks what a mode needs, otherwise undefined. */
export function lackOf(mode, model) {
  if (supports(mode, model)) return undefined;
  const { noLabels, noOrder, noVectors, noFills } = STRINGS;
  return ({ labels: noLabels, rank: noOrder, words: noVectors }[mode] ?? noFills)(model.name);
}
