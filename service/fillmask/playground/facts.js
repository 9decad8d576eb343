// The model and its limits.

import { byId, el } from "./dom.js";
import { whole } from "./numbers.js";

export function showFacts({ precision, description, license, limits, architecture, version, tasks, labels }) {
  byId("model-precision").textContent = precision;
  byId("description").textContent = description;
  const facts = {
    Parameters: whole(architecture.parameters),
    Vocabulary: `${whole(architecture.vocab_size)} tokens`,
    "Maximum text length": `${whole(limits.max_tokens)} tokens`,
    ...(labels && { Labels: whole(labels.length) }),
    ...(tasks.includes("fill-mask") && {
      "Maximum masks per request": whole(limits.max_masks),
      "Maximum fills per mask": whole(limits.max_top_k),
      "Maximum passes per request": whole(limits.max_passes),
    }),
    "Model licence": license,
    fillmask: version,
  };
  byId("facts").replaceChildren(
    ...Object.entries(facts).map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value))),
  );
}
