"""Batches of a pretraining run by their number.

The batch of a number depends only on text and configuration, so that a resumed run continues with
the same batches.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from fillmask_model.pretraining.config import TrainConfig
from fillmask_model.pretraining.pairs import PairBatch, PairRows
from fillmask_model.pretraining.rows import TokenRows, epoch_order
from fillmask_model.pretraining.short_texts import ShortTexts


class TrainingBatches:
    """Packed rows or pairs of segments, with batches of short texts at regular intervals.

    Args:
        rows: (rows, row_tokens) packed rows. A run on pairs ignores them.
        short_texts: batches of short texts. None if `short_share` is 0.
        pairs: batches of pairs. None for a run on packed rows.

    Raises:
        ValueError: the rows or the pairs do not fill a batch.
    """

    def __init__(
        self,
        rows: TokenRows,
        config: TrainConfig,
        short_texts: ShortTexts | None = None,
        pairs: PairRows | None = None,
    ) -> None:
        if pairs is None and len(rows) < config.batch_rows:
            raise ValueError(
                f"the number of rows of {config.row_tokens} tokens in the text must be at least "
                f"batch_rows, {config.batch_rows} (got {len(rows)}); add text or reduce batch_rows"
            )
        if pairs is not None:
            pairs.batch(0, config.batch_rows)  # fails for a text with too few pairs
        self.rows, self.short_texts, self.pairs = rows, short_texts, pairs
        self._config = config

    def tokens(self, number: int) -> Tensor:
        """Return the token ids (N, T) of a batch of packed rows or short texts, int64."""
        short_before, is_short = self._count_short(number)
        if self.short_texts and is_short:
            rows = self.short_texts.batch(short_before)
        else:
            rows = self.packed(number - short_before)
        return torch.from_numpy(rows.astype(np.int64))

    def pair_batch(self, number: int) -> PairBatch | None:
        """Return a batch of pairs, or None if the batch has packed rows or short texts."""
        if self.pairs is None:
            return None
        short_before, is_short = self._count_short(number)
        if is_short:
            return None
        return self.pairs.batch(number - short_before, self._config.batch_rows)

    def packed(self, number: int) -> TokenRows:
        """Return the token ids (batch_rows, row_tokens) of a batch, counted without short texts."""
        rows, size = len(self.rows), self._config.batch_rows
        epoch, index = divmod(number, rows // size)
        order = epoch_order(rows, self._config.seed, epoch)
        batch: TokenRows = self.rows[order[index * size : (index + 1) * size]]
        return batch

    def _count_short(self, number: int) -> tuple[int, bool]:
        share = self._config.short_share
        before = math.floor(number * share)
        return before, math.floor((number + 1) * share) > before
