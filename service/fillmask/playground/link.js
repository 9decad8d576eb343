// Texts, options and models in the fragment of a URL, which browsers do not send to servers.

/**
 * Return the fragment for a text, a second text, options, a model and a comparison. The comparison is
 * undefined or has a `text` and the name of a `model`.
 *
 * @param options the options that are not the defaults, by the names of their fields.
 */
export function toFragment({ text, second, options, model, comparison }) {
  const parameters = new URLSearchParams({ text, ...(second && { text_pair: second }) });
  if (model && !model.isDefault) parameters.set("model", model.name);
  if (comparison) {
    parameters.set("compare", comparison.text);
    if (comparison.model !== model.name) parameters.set("compare_model", comparison.model);
  }
  for (const [name, value] of Object.entries(options)) parameters.set(name, value);
  return `#${parameters}`;
}

/**
 * Parse a fragment into `{text, second, model, comparison, options}`. `second` is empty without a second
 * text. `model` is undefined without a model name, and `comparison` without a comparison. `options` are all
 * other parts by their names. A fragment without a text returns null.
 */
export function fromFragment(fragment) {
  const {
    text, text_pair: second = "", model, compare, compare_model: compareModel, ...options
  } = Object.fromEntries(new URLSearchParams(fragment.slice(1)));
  if (text === undefined) return null;
  const isComparing = compare !== undefined || compareModel !== undefined;
  const comparison = isComparing ? { text: compare ?? "", model: compareModel } : undefined;
  return { text, second, model, comparison, options };
}
