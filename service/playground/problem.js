// Sentences about problems, with the service's message.

/** Return the sentence for a waiting Question. A missing key has its own form and no sentence. */
export function waitingSentence({ kind, sentence, seconds }) {
  return {
    busy: `${sentence} The page tries again in ${seconds} s.`,
    starting: `${sentence} The page tries again as soon as the service is ready.`,
    unreachable: "The service is unreachable. The page tries again every second.",
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
