"""Held-out evaluation of masked-token predictions, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from fillmask_model.bootstrap import EVALUATION_SEED, bootstrap_bounds
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.pretraining.masking import MaskedBatch, Masker
from fillmask_model.pretraining.rows import TokenRows

BATCH_ROWS = 32  # fixed, because the masks depend on the number of rows in a batch
TOP_K = 5


@dataclass(frozen=True, slots=True)
class HeldOutMetrics:
    """Metrics over all selected positions of the held-out rows.

    Attributes:
        loss: mean cross-entropy in nats.
        perplexity: exponential of the loss.
        top_1: share of positions whose true token ranks first.
        top_5: share of positions whose true token is among the first five.
        predicted_tokens: number of selected positions.
    """

    loss: float
    perplexity: float
    top_1: float
    top_5: float
    predicted_tokens: int

    def summary(self) -> str:
        return (
            f"held-out loss {self.loss:.3f}, top 1 {100 * self.top_1:.1f} %, "
            f"top 5 {100 * self.top_5:.1f} %, perplexity {self.perplexity:.1f}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Predictions of a model at the M selected positions of a batch.

    Attributes:
        label_log_probs: (M,) float, log-probabilities of the true tokens in nats.
        top_ids: (M, 5) int64, the most likely tokens in descending order.
    """

    label_log_probs: NDArray[np.floating]
    top_ids: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RowScores:
    """Sums over the selected positions of each of N rows.

    Attributes:
        sums: (N, 4) cross-entropy in nats, number of positions whose true token ranks first, number
            whose true token is among the first five, and number of selected positions.
    """

    sums: NDArray[np.float64]

    def metrics(self) -> HeldOutMetrics:
        total = self.sums.sum(axis=0)
        loss, top_1, top_5 = (total[:3] / total[3]).tolist()
        return HeldOutMetrics(loss, math.exp(loss), top_1, top_5, int(total[3]))

    def intervals(self) -> dict[str, tuple[float, float]]:
        """Return bootstrap intervals of the metrics by name.

        The bootstrap resamples rows, because the positions of a row share topic and context. The
        intervals do not describe the variation between masks or between kinds of text.
        """

        def means(drawn: NDArray[np.int64]) -> NDArray[np.float64]:
            total = self.sums[drawn].sum(axis=0)
            mean: NDArray[np.float64] = total[:3] / total[3]
            return mean

        # a sample of few short rows may have no selected position
        with np.errstate(invalid="ignore"):
            bounds = bootstrap_bounds(len(self.sums), means)
        loss, top_1, top_5 = zip(*bounds, strict=True)
        perplexity = (math.exp(loss[0]), math.exp(loss[1]))
        return {"loss": loss, "perplexity": perplexity, "top_1": top_1, "top_5": top_5}


def evaluate(model: TiedEncoder, groups: Iterable[TokenRows], masker: Masker) -> RowScores:
    """Mask held-out rows with a fixed seed and score the encoder's predictions.

    Args:
        model: encoder on any device. The function restores its training mode.
        groups: arrays (N, T) of token ids, each with its own T.

    Raises:
        ValueError: the masker selects no position.
    """
    device = next(model.parameters()).device

    def predict(masked: MaskedBatch) -> Predictions:
        with torch.inference_mode():
            labels = masked.labels.to(device)
            logits_MV = model(masked.input_ids.to(device), masked.selected.to(device)).float()
            losses = F.cross_entropy(logits_MV, labels, reduction="none")
            top_ids = logits_MV.topk(TOP_K, dim=-1).indices
        return Predictions(-losses.cpu().numpy(), top_ids.cpu().numpy())

    was_training = model.training
    model.eval()
    try:
        return score(predict, groups, masker)
    finally:
        model.train(was_training)


def score(
    predict: Callable[[MaskedBatch], Predictions],
    groups: Iterable[TokenRows],
    masker: Masker,
) -> RowScores:
    """Mask held-out rows with a fixed seed and score the predictions of a function.

    Raises:
        ValueError: the masker selects no position.
    """
    batches = [_score_batch(predict(masked), masked) for masked in _masked_batches(groups, masker)]
    if not any(sums[:, 3].any() for sums in batches):
        raise ValueError("the held-out text is too short to select a token; add text")
    return RowScores(np.concatenate(batches))


def _masked_batches(groups: Iterable[TokenRows], masker: Masker) -> Iterator[MaskedBatch]:
    generator = torch.Generator().manual_seed(EVALUATION_SEED)
    for rows in groups:
        for start in range(0, len(rows), BATCH_ROWS):
            yield masker(
                torch.from_numpy(rows[start : start + BATCH_ROWS].astype(np.int64)), generator
            )


def _score_batch(predictions: Predictions, masked: MaskedBatch) -> NDArray[np.float64]:
    """Return the sums (N, 4) of a batch."""
    row_of_position, _ = np.nonzero(masked.selected.numpy())
    hits = predictions.top_ids == masked.labels.numpy()[:, None]
    values = (-predictions.label_log_probs, hits[:, 0], hits.any(axis=1), np.ones(len(hits)))
    rows = len(masked.selected)
    return np.stack([np.bincount(row_of_position, one, rows) for one in values], axis=1)
