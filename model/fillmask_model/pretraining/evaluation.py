"""Held-out evaluation of masked-token predictions, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass

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

    def to_dict(self) -> dict[str, float]:
        """Return all metrics by name."""
        return asdict(self)

    def summary(self) -> str:
        """Format the metrics for one line of output."""
        return (
            f"held-out loss {self.loss:.3f}, top 1 {100 * self.top_1:.1f} %, "
            f"top 5 {100 * self.top_5:.1f} %, perplexity {self.perplexity:.1f}"
        )


@dataclass(frozen=True, slots=True)
class Intervals:
    """Confidence intervals of the metrics with the same names, as lower and upper bounds."""

    loss: tuple[float, float]
    perplexity: tuple[float, float]
    top_1: tuple[float, float]
    top_5: tuple[float, float]

    def to_dict(self) -> dict[str, tuple[float, float]]:
        """Return all intervals by the names of their metrics."""
        return asdict(self)


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
        loss: (N,) float64, sum of the cross-entropy in nats.
        first: (N,) int64, number of positions whose true token ranks first.
        among_five: (N,) int64, number of positions whose true token is among the first five.
        predicted: (N,) int64, number of selected positions.
    """

    loss: NDArray[np.float64]
    first: NDArray[np.int64]
    among_five: NDArray[np.int64]
    predicted: NDArray[np.int64]

    def metrics(self) -> HeldOutMetrics:
        """Compute the metrics over all rows."""
        loss, top_1, top_5 = self._means(self._sums().sum(axis=0))
        count = int(self.predicted.sum())
        return HeldOutMetrics(float(loss), math.exp(loss), float(top_1), float(top_5), count)

    def intervals(self) -> Intervals:
        """Compute bootstrap intervals over rows, whose positions share topic and context.

        The intervals do not describe the variation between masks or between kinds of text.
        """
        sums = self._sums()
        # a sample of few short rows may have no selected position
        with np.errstate(invalid="ignore"):
            low, high = bootstrap_bounds(
                len(sums), lambda drawn: self._means(sums[drawn].sum(axis=0))
            )
        loss, top_1, top_5 = zip(low, high, strict=True)
        return Intervals(loss, (math.exp(loss[0]), math.exp(loss[1])), top_1, top_5)

    def _sums(self) -> NDArray[np.float64]:
        """Stack the sums as (N, 4)."""
        return np.stack([self.loss, self.first, self.among_five, self.predicted], axis=1)

    @staticmethod
    def _means(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the means (3, ...) of sums (4, ...), whose last row is the number of positions."""
        means: NDArray[np.float64] = sums[:3] / sums[3]
        return means


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
    if not any(batch.predicted.any() for batch in batches):
        raise ValueError("the held-out text is too short to select a token; add text")
    return RowScores(
        loss=np.concatenate([batch.loss for batch in batches]),
        first=np.concatenate([batch.first for batch in batches]),
        among_five=np.concatenate([batch.among_five for batch in batches]),
        predicted=np.concatenate([batch.predicted for batch in batches]),
    )


def _masked_batches(groups: Iterable[TokenRows], masker: Masker) -> Iterator[MaskedBatch]:
    generator = torch.Generator().manual_seed(EVALUATION_SEED)
    for rows in groups:
        for start in range(0, len(rows), BATCH_ROWS):
            yield masker(
                torch.from_numpy(rows[start : start + BATCH_ROWS].astype(np.int64)), generator
            )


def _score_batch(predictions: Predictions, masked: MaskedBatch) -> RowScores:
    row_of_position, _ = np.nonzero(masked.selected.numpy())
    rows = len(masked.selected)
    hits = predictions.top_ids == masked.labels.numpy()[:, None]
    loss = np.zeros(rows)
    np.subtract.at(loss, row_of_position, predictions.label_log_probs)
    return RowScores(
        loss=loss,
        first=np.bincount(row_of_position[hits[:, 0]], minlength=rows),
        among_five=np.bincount(row_of_position[hits.any(axis=1)], minlength=rows),
        predicted=np.bincount(row_of_position, minlength=rows),
    )
