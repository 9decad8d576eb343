// Offsets in a text. The service counts characters, but JavaScript counts UTF-16 units.

const WORDS = new Intl.Segmenter(undefined, { granularity: "word" });
const NEAR = 64; // UTF-16 units around an offset to search for a word
const OPENS = /[\s(\[{"'“‘„«¿¡/-]$/u;

/** Return the UTF-16 offset of each character and of the end of a text. */
export function unitOffsets(text) {
  const offsets = [];
  let unit = 0;
  for (const character of text) {
    offsets.push(unit);
    unit += character.length;
  }
  offsets.push(unit);
  return offsets;
}

/** Return the masks of a text as `[start, end]` in UTF-16 units. */
export function findMasks(text, maskToken) {
  const found = [];
  for (let at = text.indexOf(maskToken); at >= 0; at = text.indexOf(maskToken, at + 1)) {
    found.push([at, at + maskToken.length]);
  }
  return found;
}

/** Return the range of the first text that differs from the second, and the replacement. */
export function difference(from, to) {
  const most = Math.min(from.length, to.length);
  let start = 0;
  while (start < most && from[start] === to[start]) start += 1;
  if (isSplit(from, start) || isSplit(to, start)) start -= 1;
  let same = 0;
  while (same < most - start && from.at(-1 - same) === to.at(-1 - same)) same += 1;
  if (isSplit(from, from.length - same) || isSplit(to, to.length - same)) same -= 1;
  return { start, end: from.length - same, inserted: to.slice(start, to.length - same) };
}

/** Return whether an offset is inside a character of two units. */
function isSplit(text, at) {
  return /^[\uDC00-\uDFFF]/.test(text[at] ?? "") && /[\uD800-\uDBFF]$/.test(text[at - 1] ?? "");
}

/**
 * Return the edit that masks a selection, as `{start, end, inserted, word}`. The edit replaces
 * `word`. A selection inside a mask returns null. A selection with a part of a mask includes the
 * entire mask.
 */
export function maskingAt(text, start, end, maskToken) {
  const selected = text.slice(start, end);
  if (selected.trim()) {
    start += selected.length - selected.trimStart().length;
    end -= selected.length - selected.trimEnd().length;
  } else {
    end = start;
  }
  for (const [maskStart, maskEnd] of findMasks(text, maskToken)) {
    if (maskStart <= start && end <= maskEnd && !(start === end && start === maskStart)) return null;
    if (maskStart < end && start < maskEnd) {
      start = Math.min(start, maskStart);
      end = Math.max(end, maskEnd);
    }
  }
  if (start === end) {
    const word = wordAt(text, start);
    if (word) [start, end] = word;
  }
  if (start < end) return { start, end, inserted: maskToken, word: text.slice(start, end) };
  const before = start > 0 && !OPENS.test(text.slice(0, start)) ? " " : "";
  const after = /^[\p{L}\p{N}]/u.test(text.slice(start)) ? " " : "";
  return { start, end, inserted: before + maskToken + after, word: "" };
}

function wordAt(text, at) {
  const from = Math.max(0, at - NEAR);
  for (const { index, segment, isWordLike } of WORDS.segment(text.slice(from, at + NEAR))) {
    const start = from + index;
    const end = start + segment.length;
    if (isWordLike && start <= at && at <= end) return [start, end];
  }
  return null;
}

/** Return the text before and after a range, cut between words. */
export function around([start, end], text, units = 26) {
  let from = Math.max(0, start - units);
  let to = Math.min(text.length, end + units);
  if (isSplit(text, from)) from += 1;
  if (isSplit(text, to)) to -= 1;
  let before = text.slice(from, start);
  let after = text.slice(end, to);
  if (from > 0) before = `…${before.replace(/^\S*\s/u, "")}`;
  if (to < text.length) after = `${after.replace(/\s\S*$/u, "")}…`;
  return [before, after];
}

/**
 * Return the text in pieces of `{text, start, end}`, in UTF-16 units. A piece made of tokens also
 * has its `tokens`. Tokens that share a character, such as the bytes of an emoji in some models, are
 * one piece.
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
  for (const piece of pieces) piece.text = text.slice(piece.start, piece.end);
  return pieces;
}
