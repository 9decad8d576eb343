"""Predictions of a classifier.

Shapes: N rows, L labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from fillmask_model.classification.data.labels import Targets
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.fine_tuning.tokens import TokenizedTexts, sorted_batches

BATCH_ROWS = 64


@dataclass(frozen=True, slots=True, eq=False)
class LabelledTexts:
    """Token ids of texts with their targets."""

    texts: TokenizedTexts
    targets: Targets

    def select(self, rows: NDArray[np.int64]) -> LabelledTexts:
        """Return the texts and targets with the given indices."""
        return LabelledTexts(self.texts.select(rows), self.targets[rows])


def predict(model: TiedEncoder, texts: TokenizedTexts) -> NDArray[np.float32]:
    """Return the logits (N, L) of texts.

    Args:
        model: encoder with a classification head, on any device. The function sets the encoder to
            evaluation mode.
    """
    model.eval()
    device = next(model.parameters()).device
    logits: list[torch.Tensor] = []
    rows: list[NDArray[np.int64]] = []
    with torch.inference_mode():
        for batch in sorted_batches(texts, BATCH_ROWS):
            logits.append(model.classify(*batch.inputs(device)).float().cpu())
            rows.append(batch.rows)
    ordered = np.empty((len(texts), logits[0].shape[1]), np.float32)
    ordered[np.concatenate(rows)] = torch.cat(logits).numpy()
    return ordered
