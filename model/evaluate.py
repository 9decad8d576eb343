"""Held-out figures: what the encoder restores of text it has not seen."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from model.encoder import TiedEncoder
from model.masking import Masker

EVALUATION_SEED = 20_181_011  # fixed, so that every run of a model predicts the same positions


@dataclass(frozen=True, slots=True)
class HeldOutFigures:
    """Over all selected positions of the held-out rows.

    Attributes:
        loss: mean cross-entropy in nats.
        perplexity: exp(loss).
        top_1: share of positions whose true token ranks first.
        top_5: share of positions whose true token is among the first five.
        predicted_tokens: how many positions were predicted.
    """

    loss: float
    perplexity: float
    top_1: float
    top_5: float
    predicted_tokens: int

    def to_dict(self) -> dict[str, float]:
        """All figures as plain numbers."""
        return asdict(self)


@torch.inference_mode()
def evaluate(
    model: TiedEncoder, rows: NDArray[np.int32], masker: Masker, batch_rows: int = 32
) -> HeldOutFigures:
    """Corrupt held-out rows with a fixed seed and score the predictions.

    Args:
        model: evaluated where its weights lie; its training mode is restored afterwards.
        rows: (rows, T) token ids.
        masker: the corruption.
        batch_rows: rows a pass.

    Raises:
        ValueError: there is no row, or nothing could be selected.
    """
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(EVALUATION_SEED)
    was_training = model.training
    model.eval()
    loss_sum, first, among_five, count = 0.0, 0, 0, 0
    for start in range(0, len(rows), batch_rows):
        batch = torch.from_numpy(rows[start : start + batch_rows]).long()
        corrupted = masker(batch, generator)
        labels = corrupted.labels.to(device)
        logits_MV = model(corrupted.input_ids.to(device), corrupted.selected.to(device)).float()
        loss_sum += float(F.cross_entropy(logits_MV, labels, reduction="sum"))
        best_M5 = logits_MV.topk(5, dim=-1).indices
        first += int((best_M5[:, 0] == labels).sum())
        among_five += int((best_M5 == labels[:, None]).any(dim=1).sum())
        count += len(labels)
    model.train(was_training)
    if count == 0:
        raise ValueError("there is nothing to evaluate: no held-out token was selected")
    loss = loss_sum / count
    return HeldOutFigures(loss, math.exp(loss), first / count, among_five / count, count)
