"""Texts and pairs of texts as tokens.

Shapes: T tokens of a text or a pair, m masks, t tokens that are not special.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from tokenizers import Encoding

from fillmask.arrays import IntArray, int_array
from fillmask.parameters.texts import InputText


@dataclass(frozen=True, slots=True, eq=False)
class EncodedText:
    """Tokens and masks of a text or a pair.

    Attributes:
        input_ids: (T,) int64, including special tokens.
        mask_positions: (m,) int64, ascending positions in input_ids.
        mask_spans: start and end of each mask in the text, in characters.
        token_types: (T,) int64 token types. None if all tokens have type 0.
        second_start: start of a pair's second text in the joined text, in characters. 0 for a
            single text and for a window without masks in the second text.
    """

    input_ids: IntArray
    mask_positions: IntArray
    mask_spans: tuple[tuple[int, int], ...]
    token_types: IntArray | None = None
    second_start: int = 0

    def replace_mask(self, mask: int, token_ids: Sequence[int]) -> Self:
        """Return the text with other tokens in place of one mask, and the same mask positions."""
        position = self.mask_positions[mask]
        ids, types = self.input_ids, self.token_types
        inserted = int_array(token_ids)
        if types is not None:
            same = np.full(len(inserted), types[position])
            types = np.concatenate([types[:position], same, types[position + 1 :]])
        ids = np.concatenate([ids[:position], inserted, ids[position + 1 :]])
        return replace(self, input_ids=ids, token_types=types)


@dataclass(frozen=True, slots=True, eq=False)
class EncodedWords:
    """Tokens and words of a text or a pair.

    Attributes:
        input_ids: (T,) int64, including special tokens.
        positions: (t,) int64, ascending positions of the t ordinary tokens in input_ids.
        spans: start and end of each ordinary token in the text, in characters.
        words: (t,) int64, ascending index of the word of each ordinary token.
        parts: (t,) int64, part of the pair that contains each ordinary token, 0 or 1. A single text
            has only part 0.
        token_types: (T,) int64 token types. None if all tokens have type 0.
    """

    input_ids: IntArray
    positions: IntArray
    spans: tuple[tuple[int, int], ...]
    words: IntArray
    parts: IntArray
    token_types: IntArray | None = None


def positions_of(ids: list[int], token_id: int) -> Iterator[int]:
    """Yield the ascending positions of a token. list.index is ten times as fast as a loop."""
    position = -1
    for _ in range(ids.count(token_id)):
        position = ids.index(token_id, position + 1)
        yield position


def token_spans(
    text: InputText, encoding: Encoding, positions: Iterable[int]
) -> tuple[tuple[int, int], ...]:
    """Return the spans of tokens in a text, or in the joined text of a pair."""
    offsets = encoding.offsets
    if isinstance(text, str):
        return tuple([_trim(text, *offsets[p]) for p in positions])
    sequence_ids, joined, starts = encoding.sequence_ids, str(text), (0, text.second_start)
    return tuple(
        _trim(joined, *(starts[sequence_ids[p] or 0] + offset for offset in offsets[p]))
        for p in positions
    )


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without the white space that some tokenizers include in a token."""
    span = text[start:end]
    if span.isspace():
        return start, end
    return start + len(span) - len(span.lstrip()), end - (len(span) - len(span.rstrip()))
