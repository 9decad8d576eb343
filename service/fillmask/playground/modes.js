// What the modes need of a model, and what the page says without a text.

const FILLS = "Write a sentence. Insert a mask to get fills for it. Without a mask, you get the surprisal of each token.";

/** The kind of the result of each mode that fills no masks, with the sentence in place of a result. */
export const OTHER_MODES = {
  rank: { kind: "rank", empty: "Write a query, and below it the texts to order, one per line." },
  labels: { kind: "labels", empty: "Write a text to get the labels of the model with their scores." },
  words: { kind: "words", empty: "Write a text to get the words of its sparse vector with their weights." },
};

/** Return the kind of the result of a mode and the sentence in place of a result. */
export const modeOf = (mode) => OTHER_MODES[mode] ?? { kind: "fills", empty: FILLS };

/** Return whether a model has what a mode needs. */
export function supports(mode, { tasks, labels, pairs }) {
  if (mode === "labels") return tasks.includes("text-classification");
  if (mode === "rank") return Boolean(pairs) && labels?.length === 1;
  return tasks.includes(mode === "words" ? "sparse" : "fill-mask");
}

/** Return a sentence if a model lacks what a mode needs, otherwise undefined. */
export function lackOf(mode, model) {
  if (supports(mode, model)) return undefined;
  const lack = { labels: "has no labels", rank: "orders no texts", words: "makes no sparse vectors" }[mode];
  return `The model ${model.name} ${lack ?? "fills no masks"}; choose another model or another result.`;
}
