// Sentences about problems, with the service's message.

import { el } from "./dom.js";
import { STRINGS } from "./strings.js";

// the service's messages about texts that the model cannot read at once
const TOO_LONG = /must have at most \d+ (tokens, special tokens included|characters) /;

/** A paragraph with a sentence about a problem, and with a button that may solve the problem. */
export class Problem {
  #paragraph;
  #buttons;

  /** @param actions functions by the labels of their buttons. */
  constructor(paragraph, actions) {
    this.#paragraph = paragraph;
    this.#buttons = Object.entries(actions).map(([label, act]) => {
      const button = el("button", { type: "button", class: "button", hidden: true }, label);
      button.addEventListener("click", act);
      return button;
    });
    paragraph.append(...this.#buttons.flatMap((button) => [" ", button]));
  }

  /** Show a sentence and the button with a label. Without a sentence, hide the paragraph. */
  show(sentence, kind, label) {
    showProblem(this.#paragraph, sentence, kind);
    for (const button of this.#buttons) button.hidden = button.textContent !== label;
  }
}

/** Return the label of the button that may solve an error, undefined without such a button. */
export function solutionOf(refusal, { kind, body }) {
  if (isPassing(refusal)) return STRINGS.tryAgain;
  const mayRead = kind === "fills" && !body.parameters.on_long_text;
  return mayRead && TOO_LONG.test(refusal.message) ? STRINGS.readAround : undefined;
}

/** Return the sentence for a waiting Question. A missing key has its own form and no sentence. */
export function waitingSentence({ kind, sentence, seconds }) {
  return {
    busy: STRINGS.busy(sentence, seconds),
    starting: STRINGS.starting(sentence),
    unreachable: STRINGS.unreachable,
  }[kind];
}

/** Return whether a retry may succeed. */
export const isPassing = ({ status }) => status === 429 || status >= 500;

/** Show a sentence in a paragraph. Without a sentence, hide the paragraph. */
export function showProblem(paragraph, sentence, kind) {
  paragraph.querySelector("span").textContent = sentence ?? "";
  paragraph.hidden = !sentence;
  paragraph.dataset.kind = kind ?? "";
}
