// Example sentences, one per feature of the service.

import { byId, el } from "./dom.js";

const EXAMPLES = [
  { name: "One mask", text: (mask) => `Paris is the ${mask} of France.` },
  {
    name: "Masks together",
    text: (mask) => `He lives in ${mask} ${mask}, California.`,
    options: { mode: "joint" },
  },
  {
    name: "Your words",
    text: (mask) => `She drank a cup of ${mask}.`,
    options: { mode: "targets", targets: ["tea", "coffee", "hot chocolate", "sand"] },
  },
  { name: "Whole words", text: (mask) => `She works as a ${mask}.`, options: { mode: "word" } },
  {
    name: "Side by side",
    text: (mask) => `The key to the cabinets ${mask} lost.`,
    other: (mask) => `The keys to the cabinet ${mask} lost.`,
  },
  { name: "Surprisal", text: () => "The dog parked at the mailman." },
];
const LABELS = {
  name: "Labels",
  text: () => "The train was late again, and nobody told us why.",
  options: { mode: "labels" },
};
const PAIR = {
  name: "Two texts",
  text: () => "Where is the station?",
  second: "It is next to the park.",
  options: { mode: "labels" },
};

/**
 * Create buttons for a model's tasks that call `choose({text, second, options, comparison})`, and
 * return the text of the first example.
 */
export function showExamples({ mask_token: maskToken, tasks, pairs }, choose) {
  const labels = pairs ? [LABELS, PAIR] : [LABELS];
  const examples = [
    ...(tasks.includes("fill-mask") ? EXAMPLES : []),
    ...(tasks.includes("text-classification") ? labels : []),
  ];
  byId("examples").replaceChildren(
    ...examples.map(({ name, text, second, other, options }) => {
      const button = el("button", { type: "button", class: "example" }, name);
      const comparison = other && { text: other(maskToken) };
      button.addEventListener("click", () => choose({ text: text(maskToken), second, options, comparison }));
      return button;
    }),
  );
  return examples[0].text(maskToken);
}
