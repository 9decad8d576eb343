// Conversion of responses of /fill-mask, which have several shapes, to lists of fills.

/**
 * Return the lists of a response. There is one list per mask, or a single list for masks filled
 * jointly. A list has its `fills` and the `window` that the model read. A fill has the `words` that
 * it inserts, the `sequence` with these words, and its `share`, which is the length of its bar. A fill
 * also has the `probability` over the vocabulary if its share differs.
 */
export function listsOf(answer) {
  const several = Array.isArray(answer[0]);
  return (several ? answer : [answer]).map((fills) => ({
    window: fills[0]?.window,
    fills: fills.map((fill) => ({
      words: (fill.token_strs ?? [fill.token_str]).map(shown),
      share: fill.target_score ?? fill.score,
      probability: fill.target_score === undefined ? undefined : fill.score,
      sequence: fill.sequence,
      token: fill.token,
    })),
  }));
}

/** Return a token without leading space, or a symbol for a token of white space only. */
function shown(tokenStr) {
  return tokenStr.trim() || tokenStr.replace(/\n/g, "⏎").replace(/\s/g, "␣");
}
