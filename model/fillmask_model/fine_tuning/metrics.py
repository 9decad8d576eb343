"""Metrics of predicted labels and numbers. Shapes: N rows, L labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fillmask_model.bootstrap import CONFIDENCE, bootstrap_bounds
from fillmask_model.encoder.classifier import ClassifierConfig, ProblemType
from fillmask_model.fine_tuning.labels import Targets

# by default, the first metric of a problem type selects the best epoch
METRICS: Mapping[ProblemType, tuple[str, ...]] = {
    "single_label_classification": ("accuracy", "macro_f1"),
    "multi_label_classification": ("macro_f1", "micro_f1", "accuracy"),
    "regression": ("mean_squared_error", "spearman"),
}
LOWER_IS_BETTER = {"mean_squared_error"}


class LabelCounts(NamedTuple):
    """Numbers of rows (L,) by label."""

    hits: NDArray[np.int64]  # whose text and prediction have it
    predicted: NDArray[np.int64]
    actual: NDArray[np.int64]

    @classmethod
    def of(
        cls, problem_type: ProblemType, logits: NDArray[np.float32], targets: Targets
    ) -> LabelCounts:
        if problem_type == "single_label_classification":
            matrix = confusion_matrix(logits, targets)
            return cls(matrix.diagonal(), matrix.sum(axis=0), matrix.sum(axis=1))
        predicted, actual = logits > 0, targets > 0
        return cls((predicted & actual).sum(axis=0), predicted.sum(axis=0), actual.sum(axis=0))

    def f1(self) -> NDArray[np.float64]:
        """Return the F1 score (L,) of each label, 0 without rows and without predictions."""
        scores: NDArray[np.float64] = 2 * self.hits / np.maximum(self.predicted + self.actual, 1)
        return scores

    def table(self, labels: tuple[str, ...]) -> dict[str, dict[str, float]]:
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
    """Return the metrics of logits (N, L) by name.

    With several labels per text, a prediction has the labels whose logit is above 0, which is a
    probability above 0.5. The macro F1 is the mean over the labels with rows or predictions.
    """
    if problem_type == "regression":
        values = logits[:, 0]
        return {
            "mean_squared_error": float(np.mean((values.astype(np.float64) - targets) ** 2)),
            "spearman": spearman(values, targets),
        }
    counts = LabelCounts.of(problem_type, logits, targets)
    totals = counts.predicted + counts.actual
    macro_f1 = float(counts.f1().sum() / max((totals > 0).sum(), 1))
    if problem_type == "single_label_classification":
        accuracy = float(np.mean(logits.argmax(axis=1) == targets))
        return {"accuracy": accuracy, "macro_f1": macro_f1}
    return {
        "macro_f1": macro_f1,
        "micro_f1": float(2 * counts.hits.sum() / max(totals.sum(), 1)),
        "accuracy": float(np.mean(((logits > 0) == (targets > 0)).all(axis=1))),
    }


def describe_predictions(
    head: ClassifierConfig, logits: NDArray[np.float32], targets: Targets, *, intervals: bool
) -> dict[str, Any]:
    """Return what metrics.json says about predictions.

    Args:
        intervals: whether to add 95 % bootstrap confidence intervals of the metrics over the rows.
    """
    problem_type = head.problem_type
    described: dict[str, Any] = {"rows": len(targets)}
    described |= compute_metrics(problem_type, logits, targets)
    if problem_type != "regression":
        described["labels"] = LabelCounts.of(problem_type, logits, targets).table(head.labels)
    if problem_type == "single_label_classification":
        described["confusion_matrix"] = confusion_matrix(logits, targets).tolist()
    if intervals:
        names = METRICS[problem_type]

        def statistics(drawn: NDArray[np.int64]) -> NDArray[np.float64]:
            metrics = compute_metrics(problem_type, logits[drawn], targets[drawn])
            return np.array([metrics[name] for name in names])

        bounds = zip(*bootstrap_bounds(len(targets), statistics), strict=True)
        described["confidence"] = CONFIDENCE
        described["intervals"] = dict(zip(names, bounds, strict=True))
    return described


def confusion_matrix(logits: NDArray[np.float32], targets: Targets) -> NDArray[np.int64]:
    """Return the number of rows (L, L) by true label (row) and predicted label (column)."""
    L = logits.shape[1]
    pairs = targets * L + logits.argmax(axis=1)
    return np.bincount(pairs, minlength=L * L).reshape(L, L)


def spearman(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Return Spearman's rank correlation, 0 for a constant array."""
    # imported here, because the import takes a second
    from scipy.stats import spearmanr  # noqa: PLC0415

    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(spearmanr(first, second).statistic)
