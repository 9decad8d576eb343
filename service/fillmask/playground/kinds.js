// Kinds of results: what the page asks of which model, and how it shows and programs read the response.

import { percent, score } from "./numbers.js";
import { STRINGS } from "./strings.js";

const MOST_WORDS = 50; // of a sparse vector
const HUES = [265, 145, 65, 20, 320, 200]; // of entities, by their labels

/**
 * A kind of result has a `title`. All but scores, which come for a text without masks, are the choice of a
 * mode and have
 *
 * - `supports(model)`, whether a model gives such results, and the sentence `lacks(name)` if it doesn't,
 * - the sentence `empty` in place of a result.
 *
 * Results that are one list of bars also have a `note` beside the modes, the `task` and the `body(parts)` of a
 * request for the parts of its inputs, the name of the `list`, and its `rows(answer, body, model)` for `Bars`, best
 * first. If there may be no rows, the sentence `none` is in their place. Rows in the order of the text are also
 * `marks` in it. Loops over a response that are the same for every request are `code` in Python and JavaScript.
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
    code: loopOver({ item: "token", list: '["tokens"]', figure: "surprisal", digits: 1, texts: ["token_str"] }),
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
    code: loopOver({ item: "label", list: "[0]", texts: ["label"] }),
  },
  rank: {
    title: STRINGS.order,
    supports: ({ tasks, labels, pairs }) => tasks.includes("text-classification") && pairs && labels.length === 1,
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
  entities: {
    title: STRINGS.entities,
    supports: ({ tasks }) => tasks.includes("token-classification"),
    note: STRINGS.entitiesInOrder,
    lacks: STRINGS.noEntities,
    empty: STRINGS.emptyEntities,
    none: STRINGS.noEntityFound,
    task: "classify-tokens",
    body: (_parts, inputs) => ({ inputs, parameters: { on_long_text: "window" } }),
    list: STRINGS.entities,
    rows: (entities, _body, { labels }) =>
      entities.map(({ entity_group: note, word, score: share }) => ({
        words: [word], note, hue: hueOf(note, labels), share, value: percent(share),
      })),
    marks: true,
    code: loopOver({ item: "entity", texts: ["entity_group", "word"] }),
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

/** Return the hue of an entity. Its label is one of the model's without B- and I-. */
function hueOf(label, labels) {
  const names = new Set(labels.map((one) => one.slice(one.indexOf("-") + 1)));
  names.delete("O"); // outside of entities
  return HUES[[...names].indexOf(label) % HUES.length];
}

/** Return code that prints a figure and texts of each item of a response or of a list in it. */
export function loopOver({ item, list = "", figure = "score", digits = 4, texts }) {
  return {
    python: `for ${item} in response.json()${list}:
    print(f"{${item}['${figure}']:.${digits}f}", ${texts.map((text) => `${item}["${text}"]`).join(", ")})`,
    javascript: `for (const ${item} of answer${list.replace(/\["(\w+)"\]/, ".$1")}) {
  console.log(${item}.${figure}.toFixed(${digits}), ${texts.map((text) => `${item}.${text}`).join(", ")});
}`,
  };
}

/** Return the name of the kind that a mode asks for. Four modes fill masks. */
export const kindOf = (mode) => (mode in KINDS ? mode : "fills");

/** Return the lines of a text that are not blank. */
export const linesOf = (text = "") => text.split("\n").filter((line) => line.trim());
