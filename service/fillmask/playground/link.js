// Texts, options and models in the fragment of a URL, which browsers do not send to servers.

import { DEFAULTS } from "./requests.js";

const NAMES = {
  mode: "mode", topK: "top_k", targets: "targets", maxWordTokens: "max_word_tokens", order: "order",
  windowed: "window",
};
const CHOICES = {
  mode: ["token", "word", "targets", "joint", "labels", "rank", "words"],
  order: ["confidence", "left_to_right"],
  windowed: ["true", "false"],
  maxWordTokens: ["1", "2", "3", "4", "5"],
};

/**
 * Return the fragment for a text, a second text, options, a model and a comparison, without defaults.
 * The comparison is undefined or has a `text` and the name of a `model`.
 */
export function toFragment({ text, second, options, model, comparison }) {
  const parameters = new URLSearchParams({ text });
  if (second) parameters.set("text_pair", second);
  if (model && !model.isDefault) parameters.set("model", model.name);
  if (comparison) {
    parameters.set("compare", comparison.text);
    if (comparison.model !== model.name) parameters.set("compare_model", comparison.model);
  }
  for (const [key, name] of Object.entries(NAMES)) {
    const value = String(options[key]);
    if (value !== String(DEFAULTS[key])) parameters.set(name, value);
  }
  return `#${parameters}`;
}

/**
 * Parse a fragment into `{text, second, model, comparison, options, unread}`. `second` is empty without
 * a second text. `model` is undefined without a model name, and `comparison` without a comparison.
 * `unread` contains the names of invalid parts. A fragment without a text returns null.
 */
export function fromFragment(fragment) {
  const parameters = new URLSearchParams(fragment.slice(1));
  const take = (name) => {
    const value = parameters.get(name);
    parameters.delete(name);
    return value;
  };
  const text = take("text");
  if (text === null) return null;
  const second = take("text_pair") ?? "";
  const model = take("model") ?? undefined;
  const other = { text: take("compare"), model: take("compare_model") };
  const isComparing = other.text !== null || other.model !== null;
  const comparison = isComparing ? { text: other.text ?? "", model: other.model ?? undefined } : undefined;
  const options = {};
  const unread = [];
  for (const [name, value] of parameters) {
    const key = Object.keys(NAMES).find((one) => NAMES[one] === name);
    if (!key || !isAllowed(key, value)) unread.push(name);
    else options[key] = READERS[key]?.(value) ?? value;
  }
  return { text, second, model, comparison, options, unread };
}

const READERS = {
  topK: Number,
  maxWordTokens: Number,
  targets: (value) => value.split(","),
  windowed: (value) => value === "true",
};

function isAllowed(key, value) {
  if (key === "topK") return /^[1-9]\d{0,5}$/.test(value);
  return CHOICES[key]?.includes(value) ?? true;
}
