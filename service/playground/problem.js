// Problems as sentences; the service's own message if it has one.

/** The sentence for the state of a Question; none for a key, which has its own form. */
export function waitingSentence({ kind, sentence, seconds }) {
  return {
    busy: `${sentence} Asking again in ${seconds} s.`,
    starting: `${sentence} Asking again as soon as it is ready.`,
    unreachable: "The server cannot be reached. Retrying until it can.",
  }[kind];
}

/** Whether a retry may succeed. */
export const isPassing = ({ status }) => status === 429 || status >= 500;

/** Show a sentence in a paragraph, or hide the paragraph without one. */
export function showProblem(paragraph, sentence, kind) {
  paragraph.querySelector("span").textContent = sentence ?? "";
  paragraph.hidden = !sentence;
  paragraph.dataset.kind = kind ?? "";
}
