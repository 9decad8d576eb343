// Text, options and model in the fragment of a URL, which browsers do not send to servers.

import { DEFAULTS } from "./requests.js";

const NAMES = {
  mode: "mode", topK: "top_k", targets: "targets", maxWordTokens: "max_word_tokens", order: "order",
  windowed: "window",
};
const CHOICES = {
  mode: ["token", "word", "targets", "joint", "labels"],
  order: ["confidence", "left_to_right"],
  windowed: ["true", "false"],
  maxWordTokens: ["1", "2", "3", "4", "5"],
};

/** Return the fragment for a text, a second text, options and a model, without defaults. */
export function toFragment(text, second, options, model) {
  const parameters = new URLSearchParams({ text });
  if (second) parameters.set("text_pair", second);
  if (model && !model.isDefault) parameters.set("model", model.name);
  for (const [key, name] of Object.entries(NAMES)) {
    const value = String(options[key]);
    if (value !== String(DEFAULTS[key])) parameters.set(name, value);
  }
  return `#${parameters}`;
}

/**
 * Parse a fragment into `{text, second, model, options, unread}`. `second` is empty without a second
 * text. `model` is undefined without a model name. `unread` contains the names of invalid parts. A fragment without a text returns null.
 */
export function fromFragment(fragment) {
  const parameters = new URLSearchParams(fragment.slice(1));
  const text = parameters.get("text");
  if (text === null) return null;
  const second = parameters.get("text_pair") ?? "";
  const model = parameters.get("model") ?? undefined;
  parameters.delete("text_pair");
  parameters.delete("text");
  parameters.delete("model");
  const options = {};
  const unread = [];
  for (const [name, value] of parameters) {
    const key = Object.keys(NAMES).find((one) => NAMES[one] === name);
    if (!key || !isAllowed(key, value)) unread.push(name);
    else options[key] = READERS[key]?.(value) ?? value;
  }
  return { text, second, model, options, unread };
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
