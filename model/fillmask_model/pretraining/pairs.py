"""Padded batches of pairs of segments for next-sentence prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from fillmask_model.pretraining.pair_drawing import Sentences, draw_pairs


@dataclass(frozen=True, slots=True, eq=False)
class PairBatch:
    """Padded inputs of N pairs.

    Attributes:
        input_ids, token_types: (N, T) int64. Padding has type 0.
        attention_mask: (N, T) int64, 1 for tokens and 0 for padding.
        labels: (N,) int64, IS_NEXT or NOT_NEXT.
    """

    input_ids: Tensor
    token_types: Tensor
    attention_mask: Tensor
    labels: Tensor

    def rows(self, part: slice) -> PairBatch:
        """Return a range of the pairs with unchanged padding."""
        inputs = (self.input_ids[part], self.token_types[part], self.attention_mask[part])
        return PairBatch(*inputs, self.labels[part])


@dataclass(frozen=True, slots=True)
class PairTemplate:
    """Special tokens of a tokenizer's input for a pair, which the service uses too.

    BERT's input is `[CLS] A [SEP] B [SEP]`, with token type 1 from the first token of B on (Devlin
    et al. 2019, section 3). Other tokenizers have other separators or only type 0.

    Attributes:
        pieces: segment (0 or 1), or None for a special token, with the token's id and type.
    """

    pieces: tuple[tuple[int | None, int, int], ...]

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer) -> PairTemplate:
        """Derive the template from the tokenizer's input for the texts "a" and "a".

        Raises:
            ValueError: the tokenizer adds no special token before or between the segments, or
                returns no tokens for the text "a".
        """
        encoding = tokenizer.encode("a", "a")
        parts: list[int | None] = encoding.sequence_ids
        if not {0, 1} <= set(parts):
            raise ValueError(
                "the tokenizer must return tokens for the text 'a'; use another tokenizer"
            )
        # "a" may have several tokens, of which the first stands for its segment
        tokens = zip(parts, encoding.ids, encoding.type_ids, strict=True)
        pieces = tuple(
            piece for n, piece in enumerate(tokens) if piece[0] is None or piece[0] not in parts[:n]
        )
        order = [part for part, _, _ in pieces]
        if order[0] is not None or order[order.index(0) + 1] is not None:
            raise ValueError(
                "the tokenizer must have a template for pairs with a special token before the "
                "first text and between the texts; use another tokenizer"
            )
        return cls(pieces)

    @property
    def token_types(self) -> int:
        return max(kind for _, _, kind in self.pieces) + 1

    def input_of(self, *segments: list[int]) -> tuple[list[int], list[int]]:
        """Return the ids and the token types of an input with two segments."""
        ids, types = [], []
        for part, token, kind in self.pieces:
            tokens = [token] if part is None else segments[part]
            ids += tokens
            types += [kind] * len(tokens)
        return ids, types


class PairRows:
    """Inputs of pairs from the sentences of documents, and training batches of them.

    Args:
        sentences: documents with sentences of at most `longest_sentence` tokens.
        pad: id of the padding token.
        row_tokens: maximum length of an input in tokens, special tokens included.
        seed: seed of the pairs, which each epoch draws again.
    """

    def __init__(
        self, sentences: Sentences, template: PairTemplate, pad: int, row_tokens: int, seed: int
    ) -> None:
        self._sentences, self._template = sentences, template
        self._pad, self._seed = pad, seed
        special = [part for part, _, _ in template.pieces if part is None]
        self._longest = row_tokens - len(special)
        self._epoch, self._first = 0, 0
        self.pairs = self._draw()

    def batch(self, number: int, batch_rows: int) -> PairBatch:
        """Return a training batch of the run by its number, from 0.

        An epoch leaves out the last pairs if they do not fill a batch.

        Raises:
            ValueError: the text has too few pairs for a batch.
        """
        if number < self._first:
            self._epoch, self._first = 0, 0
            self.pairs = self._draw()
        while True:
            count = len(self.pairs) // batch_rows
            if not count:
                raise ValueError(
                    "the number of pairs from the text must be at least batch_rows, "
                    f"{batch_rows} (got {len(self.pairs)}); add text or reduce batch_rows"
                )
            if number < self._first + count:
                start = (number - self._first) * batch_rows
                return self.inputs(self.pairs[start : start + batch_rows])
            self._epoch, self._first = self._epoch + 1, self._first + count
            self.pairs = self._draw()

    def inputs(self, pairs: NDArray[np.int64]) -> PairBatch:
        """Return the padded inputs of pairs (N, 6)."""
        tokens = self._sentences.tokens
        rows = [
            self._template.input_of(tokens[a:b].tolist(), tokens[c:d].tolist())
            for a, b, c, d, _, _ in pairs.tolist()
        ]
        shape = (len(rows), max(len(ids) for ids, _ in rows))
        input_ids = torch.full(shape, self._pad)
        token_types, attention_mask = torch.zeros((2, *shape), dtype=torch.int64)
        for row, (ids, types) in enumerate(rows):
            input_ids[row, : len(ids)] = torch.tensor(ids)
            token_types[row, : len(ids)] = torch.tensor(types)
            attention_mask[row, : len(ids)] = 1
        labels = torch.from_numpy(pairs[:, 4].copy())
        return PairBatch(input_ids, token_types, attention_mask, labels)

    def _draw(self) -> NDArray[np.int64]:
        """Draw the pairs of the epoch.

        Raises:
            ValueError: the text has fewer than two documents, or no document with two sentences.
        """
        pairs = draw_pairs(self._sentences, self._longest, self._seed, self._epoch)
        if not len(pairs):
            raise ValueError(
                "the text must have at least two documents, one of them with two or more "
                f"sentences (got documents: {len(self._sentences.documents) - 1}); add documents "
                "of several sentences"
            )
        return pairs
