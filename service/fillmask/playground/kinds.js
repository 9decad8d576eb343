// Kinds of results: what the page asks of which model, and how it shows and programs read the response.

import { percent, score } from "./numbers.js";
import { STRINGS } from "./strings.js";

const MOST_WORDS = 50; // of a sparse vector

/**
 * A kind of result has a `title`. All but scores, which come for a text without masks, are the choice of a
 * mode and have
 *
 * - `supports(model)`, whether a model gives such results, and the sentence `lacks(name)` if it doesn't,
 * - the sentence `empty` in place of a result.
 *
 * Results that are one list of bars also have a `note` beside the modes, the `task` and the `body(parts)` of a request for the parts
 * of its inputs, the name of the `list`, and its `rows(answer, body, model)` of `{words, share, value}`, best
 * first. Rows without a share have no bars. Loops over a response that are the same for every request are
 * `code` in Python and JavaScript.
 */
export const KINDS = {
  fills: {
    title: STRINGS.fills,
    supports: ({ tasks }) => tasks.includes("fill-mask"),
    lacks: STRINGS.noFills,
    empty: STRINGS.emptyFills,
  },
  score: {
    title: STRINGS.surprisal,
    code: loopOver({ item: "token", list: '["tokens"]', figure: "surprisal", digits: 1, text: "token_str" }),
  },
  labels: {
    title: STRINGS.labels,
    supports: ({ tasks }) => tasks.includes("text-classification"),
    note: STRINGS.allLabels,
    lacks: STRINGS.noLabels,
    empty: STRINGS.emptyLabels,
    task: "classify",
    body: (_parts, inputs) => ({ inputs }),
    list: STRINGS.labels,
    rows: ([labels], _body, { problem_type: problemType }) =>
      labels.map(({ label, score: value }) =>
        problemType === "regression"
          ? { words: [label], value: score(value) }
          : { words: [label], share: value, value: percent(value) },
      ),
    code: loopOver({ item: "label", list: "[0]", text: "label" }),
  },
  rank: {
    title: STRINGS.order,
    supports: ({ labels, pairs }) => Boolean(pairs) && labels?.length === 1,
    note: STRINGS.textsByRelevance,
    lacks: STRINGS.noOrder,
    empty: STRINGS.emptyOrder,
    task: "rerank",
    body: ([query, second]) => ({ query, texts: linesOf(second) }),
    list: STRINGS.texts,
    rows: (ranks, { texts }) =>
      ranks.map(({ index, score: share }) => ({ words: [texts[index]], share, value: percent(share) })),
    code: {
      python: `for rank in response.json():
    print(f"{rank['score']:.4f}", body["texts"][rank["index"]])`,
      javascript: `for (const { index, score } of answer) {
  console.log(score.toFixed(4), body.texts[index]);
}`,
    },
  },
  words: {
    title: STRINGS.words,
    supports: ({ tasks }) => tasks.includes("sparse"),
    note: STRINGS.largestWeights,
    lacks: STRINGS.noVectors,
    empty: STRINGS.emptyWords,
    none: STRINGS.emptyVector,
    task: "embed_sparse",
    body: ([inputs]) => ({ inputs, format: "tokens", top_n: MOST_WORDS }),
    list: STRINGS.words,
    rows: ([weights]) => {
      const ranked = Object.entries(weights).sort(([, one], [, other]) => other - one);
      return ranked.map(([word, weight]) => ({
        words: [word], share: weight / ranked[0][1], value: weight.toFixed(2),
      }));
    },
    code: {
      python: `for token, weight in response.json()[0].items():
    print(f"{weight:.2f}", token)`,
      javascript: `for (const [token, weight] of Object.entries(answer[0])) {
  console.log(weight.toFixed(2), token);
}`,
    },
  },
};

/** Return code that prints a figure and a text of each item of a response or of a list in it. */
export function loopOver({ item, list = "", figure = "score", digits = 4, text }) {
  return {
    python: `for ${item} in response.json()${list}:
    print(f"{${item}['${figure}']:.${digits}f}", ${item}["${text}"])`,
    javascript: `for (const ${item} of answer${list.replace(/\["(\w+)"\]/, ".$1")}) {
  console.log(${item}.${figure}.toFixed(${digits}), ${item}.${text});
}`,
  };
}

/** Return the name of the kind that a mode asks for. Four modes fill masks. */
export const kindOf = (mode) => (mode in KINDS ? mode : "fills");

/** Return the lines of a text that are not blank. */
export const linesOf = (text = "") => text.split("\n").filter((line) => line.trim());
