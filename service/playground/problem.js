// What keeps an answer away, in a sentence: the service's own where it has one.

/** The sentence for what a Question is waiting for; none for a key, which is asked for by itself. */
export function waitingSentence({ kind, sentence, seconds }) {
  return {
    busy: `${sentence} Asking again in ${seconds} s.`,
    starting: `${sentence} Asking again as soon as it is ready.`,
    unreachable: "The server cannot be reached. Asking again as soon as it can be.",
  }[kind];
}

/** Whether the same question may get another answer later. */
export const isPassing = ({ status }) => status === 429 || status >= 500;

/** Show a sentence in a paragraph; with none, hide it. */
export function showProblem(paragraph, sentence, kind) {
  paragraph.querySelector("span").textContent = sentence ?? "";
  paragraph.hidden = !sentence;
  paragraph.dataset.kind = kind ?? "";
}
