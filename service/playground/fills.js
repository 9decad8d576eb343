// An answer of /fill-mask as lists to show, whatever its shape.

/**
 * The lists of an answer: one for each mask, or a single one of masks filled together. Of each its
 * `fills` and the `window` the model saw; of each fill the `words` it puts in, its `share` (what its
 * bar shows), the `probability` over the vocabulary where that is something else, and `sequence`.
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

/** A token without the space that some models count as part of it; white space alone by a sign. */
function shown(tokenStr) {
  return tokenStr.trim() || tokenStr.replace(/\n/g, "⏎").replace(/\s/g, "␣");
}
