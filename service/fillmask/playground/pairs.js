// Texts and pairs of texts in requests and responses. The service joins the texts of a pair by one space.

import { piecesOf } from "./text.js";

/** Return the inputs of a request, which are a text or a pair. */
export const inputsOf = (text, second) => (second ? { text, text_pair: second } : text);

/** Return the parts of inputs, one text or two. */
export const partsOf = (inputs) => (typeof inputs === "string" ? [inputs] : [inputs.text, inputs.text_pair]);

/** Return inputs as one text, in which fills and scores have their places. */
export const joined = (inputs, separator = " ") => partsOf(inputs).join(separator);

/**
 * Return the parts of a filled text.
 *
 * @param inputs the inputs with masks.
 * @param sequence the joined text with fills in place of one mask or of all masks.
 */
export function splitFilled(inputs, sequence, maskToken) {
  const [first, second] = partsOf(inputs);
  if (second === undefined) return [sequence];
  if (sequence.startsWith(`${first} `)) return [first, sequence.slice(first.length + 1)];
  if (sequence.endsWith(` ${second}`)) return [sequence.slice(0, -second.length - 1), second];
  // joint fills change both parts, and a fill may join the last word of the first part
  const [before, after] = [first, second].map((part) =>
    part.split(maskToken).map(escaped).join("[^]*?"),
  );
  const found = new RegExp(`^(${before}) ?(${after})$`).exec(sequence);
  return found ? found.slice(1) : [sequence, ""];
}

/** Return a regular expression for a text between masks. Fills may join the words beside a mask. */
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`).replace(/^\s+|\s+$/g, String.raw`\s*`);

/** Return the joined text in pieces. The service counts the characters of a pair from the start of each part. */
export function joinedPieces(inputs, tokens) {
  const offset = [...partsOf(inputs)[0]].length + 1;
  const placed = tokens.map((token) =>
    token.part === "text_pair" ? { ...token, start: token.start + offset, end: token.end + offset } : token,
  );
  // one character between the parts, as in the service's joined text
  return piecesOf(joined(inputs, "\n"), placed);
}

/** Return the inputs with a mask in place of a range of the joined text, in UTF-16 units. */
export function maskInputs(inputs, { start, end }, maskToken) {
  const [first, second] = partsOf(inputs);
  const replaced = (text, from) => text.slice(0, start - from) + maskToken + text.slice(end - from);
  const offset = first.length + 1;
  return start < offset ? inputsOf(replaced(first, 0), second) : inputsOf(first, replaced(second, offset));
}
