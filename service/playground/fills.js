// A response of /fill-mask of any shape as lists to show.

/**
 * The lists of a response: one per mask, or a single one for masks filled jointly. Each has its
 * `fills` and the `window` that the model saw. Each fill has the `words` it inserts, its `share`
 * (the length of its bar), the `probability` over the vocabulary if that differs, and `sequence`.
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

/** A token without the leading space that some models include; white space alone as a symbol. */
function shown(tokenStr) {
  return tokenStr.trim() || tokenStr.replace(/\n/g, "⏎").replace(/\s/g, "␣");
}
