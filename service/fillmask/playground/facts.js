// The model and its limits.

import { byId, el } from "./dom.js";
import { whole } from "./numbers.js";
import { STRINGS } from "./strings.js";

export function showFacts({ precision, description, license, limits, architecture, version, tasks, labels }) {
  byId("model-precision").textContent = precision;
  byId("description").textContent = description;
  const facts = {
    [STRINGS.parameters]: whole(architecture.parameters),
    [STRINGS.vocabulary]: STRINGS.tokenCount(whole(architecture.vocab_size)),
    [STRINGS.maxTextLength]: STRINGS.tokenCount(whole(limits.max_tokens)),
    ...(labels && { [STRINGS.labels]: whole(labels.length) }),
    ...(tasks.includes("fill-mask") && {
      [STRINGS.maxMasks]: whole(limits.max_masks),
      [STRINGS.maxFills]: whole(limits.max_top_k),
      [STRINGS.maxPasses]: whole(limits.max_passes),
    }),
    [STRINGS.licence]: license,
    fillmask: version,
  };
  byId("facts").replaceChildren(
    ...Object.entries(facts).map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value))),
  );
}
