"""Input of a pair with the special tokens and token types of a tokenizer.

BERT's input is `[CLS] A [SEP] B [SEP]`, with token type 1 from the first token of B on (Devlin et
al. 2019, section 3). Other tokenizers have other separators or only type 0. Training uses the
tokenizer's template, because the service also uses the template.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from fillmask_model.pretraining.rows import TokenRows

_TEXT = "a"  # any text that has a token


@dataclass(frozen=True, slots=True)
class PairTemplate:
    """Special tokens and token types of a pair's input.

    Attributes:
        special: ids of the special tokens before, between and after the segments.
        types: token types of the special tokens before, between and after the segments.
        segment_types: token types of the first and of the second segment.
    """

    special: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    types: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    segment_types: tuple[int, int]

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer) -> PairTemplate:
        """Derive the template from the tokenizer's input for a pair.

        Raises:
            ValueError: the tokenizer adds no special token before or between the segments, or
                returns no tokens for the text "a".
        """
        encoding = tokenizer.encode(_TEXT, _TEXT)
        parts, types = encoding.sequence_ids, encoding.type_ids
        if not {0, 1} <= set(parts):
            raise ValueError(
                f"the tokenizer must return tokens for the text {_TEXT!r}; use another tokenizer"
            )
        firsts = [parts.index(part) for part in (0, 1)]
        lasts = [len(parts) - parts[::-1].index(part) for part in (0, 1)]
        around = [slice(0, firsts[0]), slice(lasts[0], firsts[1]), slice(lasts[1], None)]
        before, between, after = (tuple(encoding.ids[one]) for one in around)
        if not (before and between):
            raise ValueError(
                "the tokenizer must have a template for pairs with a special token before the "
                "first text and between the texts; use another tokenizer"
            )
        of_before, of_between, of_after = (tuple(types[one]) for one in around)
        return cls(
            (before, between, after),
            (of_before, of_between, of_after),
            (types[firsts[0]], types[firsts[1]]),
        )

    @property
    def special_count(self) -> int:
        """Number of special tokens in an input."""
        return sum(map(len, self.special))

    @property
    def token_types(self) -> int:
        """Number of token types that an encoder needs for the template."""
        return max((*self.segment_types, *(one for part in self.types for one in part))) + 1

    def input_of(
        self, first: TokenRows, second: TokenRows
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ids (T,) and the token types (T,) of an input with two segments."""
        before, between, after = (np.array(part, np.int64) for part in self.special)
        of_before, of_between, of_after = (np.array(part, np.int64) for part in self.types)
        of_first, of_second = self.segment_types
        ids = np.concatenate([before, first, between, second, after])
        types = np.concatenate(
            [
                of_before,
                np.full(len(first), of_first),
                of_between,
                np.full(len(second), of_second),
                of_after,
            ]
        )
        return ids, types
