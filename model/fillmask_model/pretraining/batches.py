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
from fillmask_model.pretraining.pairs import PairBatch
from fillmask_model.pretraining.rows import epoch_order
from fillmask_model.pretraining.short_texts import ShortTexts
from fillmask_model.pretraining.texts import TrainingText


class TrainingBatches:
    """Packed rows or pairs of segments, with batches of short texts at regular intervals.

    Raises:
        ValueError: the rows or the pairs do not fill a batch.
    """

    def __init__(self, text: TrainingText, config: TrainConfig) -> None:
        self.rows, self.pairs = text.packed, text.pairs
        kind, count = f"rows of {config.row_tokens} tokens in", len(self.rows)
        if self.pairs is not None:
            kind, count = "pairs from", len(self.pairs.ids)
        if count < config.batch_rows:
            raise ValueError(
                f"the number of {kind} the text must be at least batch_rows, {config.batch_rows} "
                f"(got {count}); add text or reduce batch_rows"
            )
        self._count, self._config = count, config
        tokens = config.batch_rows * config.row_tokens
        self.short_texts = ShortTexts(text.short, tokens, config.seed)

    def batch(self, number: int) -> tuple[Tensor, PairBatch | None]:
        """Return the token ids (N, T) of a batch, int64, and the batch itself if it has pairs."""
        share = self._config.short_share
        short_before = math.floor(number * share)
        if math.floor((number + 1) * share) > short_before:
            rows = self.short_texts.batch(short_before)
            return torch.from_numpy(rows.astype(np.int64)), None
        size = self._config.batch_rows
        epoch, index = divmod(number - short_before, self._count // size)
        order = epoch_order(self._count, self._config.seed, epoch)
        chosen = order[index * size : (index + 1) * size]
        if self.pairs is not None:
            pairs = self.pairs.batch(chosen)
            return pairs.input_ids, pairs
        return torch.from_numpy(self.rows[chosen].astype(np.int64)), None
