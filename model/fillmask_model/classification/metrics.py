"""Metrics of predicted labels and numbers, with bootstrap confidence intervals.

Shapes: N rows, L labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fillmask_model.bootstrap import bootstrap_bounds
from fillmask_model.classification.data.labels import Targets
from fillmask_model.encoder.classifier import ProblemType

# by default, the first metric of a problem type selects the best epoch
METRICS: Mapping[ProblemType, tuple[str, ...]] = {
    "single_label_classification": ("accuracy", "macro_f1"),
    "multi_label_classification": ("macro_f1", "micro_f1", "accuracy"),
    "regression": ("mean_squared_error", "spearman"),
}
LOWER_IS_BETTER = {"mean_squared_error"}


@dataclass(frozen=True, slots=True, eq=False)
class LabelCounts:
    """Counts of true and predicted labels.

    Attributes:
        hits: (L,) number of rows whose text and prediction have the label.
        predicted: (L,) number of rows whose prediction has the label.
        actual: (L,) number of rows whose text has the label.
    """

    hits: NDArray[np.int64]
    predicted: NDArray[np.int64]
    actual: NDArray[np.int64]

    def f1(self) -> NDArray[np.float64]:
        """Return the F1 score (L,) of each label.

        The score is 0 for labels without rows and without predictions.
        """
        total = self.predicted + self.actual
        scores: NDArray[np.float64] = 2 * self.hits / np.maximum(total, 1)
        return scores

    def macro_f1(self) -> float:
        """Return the mean F1 score over the labels with rows or predictions."""
        occurs = self.predicted + self.actual > 0
        return float(self.f1()[occurs].mean()) if occurs.any() else 0.0

    def micro_f1(self) -> float:
        """Return the F1 score of all labels together."""
        total = (self.predicted + self.actual).sum()
        return float(2 * self.hits.sum() / max(total, 1))

    def table(self, labels: tuple[str, ...]) -> dict[str, dict[str, float]]:
        """Return the precision, recall, F1 score and number of rows of each label."""
        precision = self.hits / np.maximum(self.predicted, 1)
        recall = self.hits / np.maximum(self.actual, 1)
        columns = zip(precision, recall, self.f1(), self.actual, strict=True)
        return {
            label: {"precision": float(p), "recall": float(r), "f1": float(f), "rows": int(n)}
            for label, (p, r, f, n) in zip(labels, columns, strict=True)
        }


def compute_metrics(
    problem_type: ProblemType, logits: NDArray[np.float32], targets: Targets
) -> dict[str, float]:
    """Return the metrics of a problem type by name.

    Args:
        logits: (N, L) outputs of the classification head.
        targets: true labels or numbers.
    """
    if problem_type == "regression":
        values = logits[:, 0]
        return {
            "mean_squared_error": float(np.mean((values.astype(np.float64) - targets) ** 2)),
            "spearman": spearman(values, targets),
        }
    counts = count_labels(problem_type, logits, targets)
    if problem_type == "single_label_classification":
        accuracy = float(np.mean(logits.argmax(axis=1) == targets))
        return {"accuracy": accuracy, "macro_f1": counts.macro_f1()}
    accuracy = float(np.mean(((logits > 0) == (targets > 0)).all(axis=1)))
    return {
        "macro_f1": counts.macro_f1(),
        "micro_f1": counts.micro_f1(),
        "accuracy": accuracy,
    }


def bootstrap_intervals(
    problem_type: ProblemType, logits: NDArray[np.float32], targets: Targets
) -> dict[str, tuple[float, float]]:
    """Return 95 % bootstrap confidence intervals of the metrics over the rows."""
    names = METRICS[problem_type]

    def statistics(drawn: NDArray[np.int64]) -> NDArray[np.float64]:
        metrics = compute_metrics(problem_type, logits[drawn], targets[drawn])
        return np.array([metrics[name] for name in names])

    low, high = bootstrap_bounds(len(targets), statistics)
    return dict(zip(names, zip(low, high, strict=True), strict=True))


def count_labels(
    problem_type: ProblemType, logits: NDArray[np.float32], targets: Targets
) -> LabelCounts:
    """Count true and predicted labels.

    With several labels per text, a prediction has the labels whose logit is above 0. The
    probability of these labels is above 0.5.
    """
    if problem_type == "single_label_classification":
        matrix = confusion_matrix(logits, targets)
        return LabelCounts(matrix.diagonal(), matrix.sum(axis=0), matrix.sum(axis=1))
    predicted, actual = logits > 0, targets > 0
    return LabelCounts((predicted & actual).sum(axis=0), predicted.sum(axis=0), actual.sum(axis=0))


def confusion_matrix(logits: NDArray[np.float32], targets: Targets) -> NDArray[np.int64]:
    """Return the number of rows (L, L) by true label (row) and predicted label (column)."""
    L = logits.shape[1]
    pairs = targets * L + logits.argmax(axis=1)
    return np.bincount(pairs, minlength=L * L).reshape(L, L)


def spearman(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Return Spearman's rank correlation.

    The result for a constant array is 0.
    """
    x, y = (ranks - ranks.mean() for ranks in (_ranks(first), _ranks(second)))
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if scale else 0.0


def _ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return ranks from 1.

    Equal values have their mean rank.
    """
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last: NDArray[np.int64] = counts.cumsum()
    mean_rank: NDArray[np.float64] = last - (counts - 1) / 2
    return mean_rank[group]
