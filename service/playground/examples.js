// Example sentences, one for each feature of the service.

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
  { name: "What does not fit", text: () => "The dog parked at the mailman." },
];

/** Create their buttons, which call `choose(text, options)`. Returns the first example's text. */
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
