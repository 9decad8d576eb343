"""Texts and pairs of texts as tokens.

Shapes: T tokens of a text or a pair, m masks, t tokens that are not special.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from fillmask.arrays import IntArray, int_array


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
