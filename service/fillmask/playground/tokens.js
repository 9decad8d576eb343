// Conversion of a response of /score to pieces of the text.

import { unitOffsets } from "./text.js";

/**
 * Return the text in pieces of `{text, start, end}`, in UTF-16 units. A piece made of tokens also
 * has its `tokens`, its `surprisal` in bits and its `probability`. Tokens that share a character,
 * such as the bytes of an emoji in some models, are one piece.
 */
export function piecesOf(text, tokens) {
  const offsets = unitOffsets(text);
  const pieces = [];
  let at = 0;
  for (const token of tokens) {
    const start = offsets[token.start];
    const end = offsets[token.end];
    const last = pieces.at(-1);
    if (last?.tokens && start < at) {
      last.tokens.push(token);
      at = last.end = Math.max(at, end);
      continue;
    }
    if (start > at) pieces.push({ start: at, end: start });
    pieces.push({ start, end, tokens: [token] });
    at = end;
  }
  if (at < text.length) pieces.push({ start: at, end: text.length });
  for (const piece of pieces) {
    piece.text = text.slice(piece.start, piece.end);
    if (!piece.tokens) continue;
    piece.surprisal = piece.tokens.reduce((sum, token) => sum + token.surprisal, 0);
    piece.probability = 2 ** -piece.surprisal;
  }
  return pieces;
}
