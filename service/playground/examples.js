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
  { name: "Surprisal", text: () => "The dog parked at the mailman." },
];

/** Create buttons that call `choose(text, options)`, and return the text of the first example. */
export function showExamples(maskToken, choose) {
  byId("examples").replaceChildren(
    ...EXAMPLES.map(({ name, text, options }) => {
      const button = el("button", { type: "button", class: "example" }, name);
      button.addEventListener("click", () => choose(text(maskToken), options ?? {}));
      return button;
    }),
  );
  return EXAMPLES[0].text(maskToken);
}
