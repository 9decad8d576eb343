// Example sentences, one per feature of the service.

import { byId, el } from "./dom.js";
import { KINDS, kindOf } from "./kinds.js";
import { STRINGS } from "./strings.js";

const STATION = "Where is the station?";
const EXAMPLES = [
  { name: STRINGS.oneMask, mode: "token", text: "Paris is the [MASK] of France." },
  { name: STRINGS.masksTogether, mode: "joint", text: "He lives in [MASK] [MASK], California." },
  {
    name: STRINGS.yourWords,
    mode: "targets",
    targets: "tea, coffee, hot chocolate, sand",
    text: "She drank a cup of [MASK].",
  },
  { name: STRINGS.wholeWords, mode: "word", text: "She works as a [MASK]." },
  {
    name: STRINGS.sideBySide,
    mode: "token",
    text: "The key to the cabinets [MASK] lost.",
    other: "The keys to the cabinet [MASK] lost.",
  },
  { name: STRINGS.surprisal, mode: "token", text: "The dog parked at the mailman." },
  {
    name: STRINGS.order,
    mode: "rank",
    text: STATION,
    second: "The station is next to the park.\nThe train was late again.\nHe bought a new bicycle.",
  },
  { name: STRINGS.labels, mode: "labels", text: "The train was late again, and nobody told us why." },
  { name: STRINGS.twoTexts, mode: "labels", text: STATION, second: "It is next to the park." },
  { name: STRINGS.entities, mode: "entities", text: "Ada Lovelace worked with Charles Babbage in London." },
  { name: STRINGS.sparseVector, mode: "words", text: "The panda eats bamboo in the mountains of China." },
];

/**
 * Create buttons for a model's tasks that call `choose({text, second, options, comparison})`, and
 * return the first example.
 */
export function showExamples(model, choose) {
  const masked = (text) => text.replaceAll("[MASK]", model.mask_token);
  const examples = EXAMPLES.filter(
    ({ mode, second }) => KINDS[kindOf(mode)].supports(model) && (!second || model.pairs),
  ).map(({ name, text, second, other, ...options }) => ({
    name, text: masked(text), second, options, comparison: other && { text: masked(other) },
  }));
  byId("examples").replaceChildren(
    ...examples.map((example) => {
      const button = el("button", { type: "button", class: "button example" }, example.name);
      button.addEventListener("click", () => choose(example));
      return button;
    }),
  );
  return examples[0];
}
