// Example sentences, one per feature of the service.

import { byId, el } from "./dom.js";
import { supports } from "./modes.js";
import { STRINGS } from "./strings.js";

const EXAMPLES = [
  { name: STRINGS.oneMask, text: (mask) => `Paris is the ${mask} of France.` },
  {
    name: STRINGS.masksTogether,
    text: (mask) => `He lives in ${mask} ${mask}, California.`,
    options: { mode: "joint" },
  },
  {
    name: STRINGS.yourWords,
    text: (mask) => `She drank a cup of ${mask}.`,
    options: { mode: "targets", targets: ["tea", "coffee", "hot chocolate", "sand"] },
  },
  { name: STRINGS.wholeWords, text: (mask) => `She works as a ${mask}.`, options: { mode: "word" } },
  {
    name: STRINGS.sideBySide,
    text: (mask) => `The key to the cabinets ${mask} lost.`,
    other: (mask) => `The keys to the cabinet ${mask} lost.`,
  },
  { name: STRINGS.surprisal, text: () => "The dog parked at the mailman." },
];
const LABELS = {
  name: STRINGS.labels,
  text: () => "The train was late again, and nobody told us why.",
  options: { mode: "labels" },
};
const PAIR = {
  name: STRINGS.twoTexts,
  text: () => "Where is the station?",
  second: "It is next to the park.",
  options: { mode: "labels" },
};

const RANK = {
  name: STRINGS.order,
  text: () => "Where is the station?",
  second: "The station is next to the park.\nThe train was late again.\nHe bought a new bicycle.",
  options: { mode: "rank" },
};
const WORDS = {
  name: STRINGS.sparseVector,
  text: () => "The panda eats bamboo in the mountains of China.",
  options: { mode: "words" },
};

/**
 * Create buttons for a model's tasks that call `choose({text, second, options, comparison})`, and
 * return the first example.
 */
export function showExamples(model, choose) {
  const { mask_token: maskToken, pairs } = model;
  const examples = [
    ...(supports("token", model) ? EXAMPLES : []),
    ...(supports("rank", model) ? [RANK] : []),
    ...(supports("labels", model) ? (pairs ? [LABELS, PAIR] : [LABELS]) : []),
    ...(supports("words", model) ? [WORDS] : []),
  ];
  const chosen = ({ text, second, other, options }) => ({
    text: text(maskToken), second, options, comparison: other && { text: other(maskToken) },
  });
  byId("examples").replaceChildren(
    ...examples.map((example) => {
      const button = el("button", { type: "button", class: "example" }, example.name);
      button.addEventListener("click", () => choose(chosen(example)));
      return button;
    }),
  );
  return chosen(examples[0]);
}
