"""Padded batches of pairs of segments for next-sentence prediction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fillmask_model.pretraining.pair_drawing import Pairs, draw_pairs
from fillmask_model.pretraining.pair_template import PairTemplate
from fillmask_model.pretraining.sentences import Sentences


@dataclass(frozen=True, slots=True, eq=False)
class PairBatch:
    """Padded inputs of N pairs.

    Attributes:
        input_ids: (N, T) int64.
        token_types: (N, T) int64. Padding has type 0.
        attention_mask: (N, T) int64, 1 for tokens and 0 for padding.
        labels: (N,) int64, IS_NEXT or NOT_NEXT.
        documents: (N,) int64, index of the first segment's document.
    """

    input_ids: Tensor
    token_types: Tensor
    attention_mask: Tensor
    labels: Tensor
    documents: NDArray[np.int64]

    def rows(self, part: slice) -> PairBatch:
        """Return a range of the pairs with unchanged padding."""
        return PairBatch(
            self.input_ids[part],
            self.token_types[part],
            self.attention_mask[part],
            self.labels[part],
            self.documents[part],
        )


class PairRows:
    """Inputs of pairs from the sentences of documents.

    Args:
        sentences: documents with sentences of at most `longest_sentence` tokens.
        pad: id of the padding token.
        row_tokens: maximum length of an input in tokens, special tokens included.
    """

    def __init__(
        self, sentences: Sentences, template: PairTemplate, pad: int, row_tokens: int
    ) -> None:
        self._sentences, self._template = sentences, template
        self._pad, self._longest = pad, row_tokens - template.special_count

    def draw(self, seed: int, epoch: int = 0) -> Pairs:
        """Draw the pairs of an epoch.

        Raises:
            ValueError: the text has fewer than two documents, or no document with two sentences.
        """
        pairs = draw_pairs(self._sentences, self._longest, seed, epoch)
        if not len(pairs):
            raise ValueError(
                "the text must have at least two documents, one of them with two or more "
                f"sentences (got documents: {len(self._sentences.documents) - 1}); add documents "
                "of several sentences"
            )
        return pairs

    def batch(self, pairs: Pairs, part: slice) -> PairBatch:
        """Return the padded inputs of some pairs."""
        tokens = self._sentences.tokens
        segments = zip(pairs.first[part].tolist(), pairs.second[part].tolist(), strict=True)
        rows = [self._template.input_of(tokens[a:b], tokens[c:d]) for (a, b), (c, d) in segments]
        shape = (len(rows), max(len(ids) for ids, _ in rows))
        input_ids = np.full(shape, self._pad, np.int64)
        token_types, attention_mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, (ids, types) in enumerate(rows):
            input_ids[row, : len(ids)] = ids
            token_types[row, : len(ids)] = types
            attention_mask[row, : len(ids)] = 1
        return PairBatch(
            torch.from_numpy(input_ids),
            torch.from_numpy(token_types),
            torch.from_numpy(attention_mask),
            torch.from_numpy(pairs.labels[part].copy()),
            pairs.documents[part],
        )

    def batches(
        self, pairs: Pairs, batch_rows: int, count: int | None = None
    ) -> Iterator[PairBatch]:
        """Yield the padded inputs of the first `count` pairs, or of all pairs without a count."""
        end = len(pairs) if count is None else min(count, len(pairs))
        for start in range(0, end, batch_rows):
            yield self.batch(pairs, slice(start, min(start + batch_rows, end)))


class PairBatches:
    """Training batches of pairs, which each epoch draws again.

    An epoch leaves out the last pairs if they do not fill a batch.

    Args:
        batch_rows: number of pairs in a batch.
        seed: seed of the pairs and of their order.

    Raises:
        ValueError: the text has too few pairs for a batch.
    """

    def __init__(self, rows: PairRows, batch_rows: int, seed: int) -> None:
        self._rows, self._batch_rows, self._seed = rows, batch_rows, seed
        self._start_epoch(0, 0)

    @property
    def pairs_per_epoch(self) -> int:
        """Number of pairs in the current epoch. Other epochs have about as many pairs."""
        return len(self._pairs)

    def batch(self, number: int) -> PairBatch:
        """Return a batch of the run by its number, from 0."""
        if number < self._first:
            self._start_epoch(0, 0)
        while number >= self._first + self._count:
            self._start_epoch(self._epoch + 1, self._first + self._count)
        start = (number - self._first) * self._batch_rows
        return self._rows.batch(self._pairs, slice(start, start + self._batch_rows))

    def _start_epoch(self, epoch: int, first: int) -> None:
        """Draw the pairs of the epoch whose first batch has the number `first`."""
        self._epoch, self._first = epoch, first
        self._pairs = self._rows.draw(self._seed, epoch)
        self._count = len(self._pairs) // self._batch_rows
        if not self._count:
            raise ValueError(
                "the number of pairs from the text must be at least batch_rows, "
                f"{self._batch_rows} (got {len(self._pairs)}); add text or reduce batch_rows"
            )
