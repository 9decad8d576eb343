"""Metrics of predicted labels, numbers and entities.

Shapes: N rows, T tokens, L labels of texts or of entities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fillmask_model.bootstrap import CONFIDENCE, bootstrap_bounds
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.fine_tuning.entities import IGNORED, entities_of
from fillmask_model.fine_tuning.labels import TOKENS, Targets

# by default, the first metric of a problem type selects the best epoch
METRICS: Mapping[str, tuple[str, ...]] = {
    "single_label_classification": ("accuracy", "macro_f1"),
    "multi_label_classification": ("macro_f1", "micro_f1", "accuracy"),
    "regression": ("mean_squared_error", "spearman"),
    TOKENS: ("f1", "precision", "recall"),  # of entities
}
LOWER_IS_BETTER = {"mean_squared_error"}


class LabelCounts(NamedTuple):
    """Numbers of rows or entities (L,) by label."""

    hits: NDArray[np.int64]  # which text and prediction have
    predicted: NDArray[np.int64]
    actual: NDArray[np.int64]

    @classmethod
    def of(cls, problem_type: str, logits: NDArray[np.float32], targets: Targets) -> LabelCounts:
        if problem_type == TOKENS:
            return cls.of_entities(logits, targets)
        if problem_type == "single_label_classification":
            matrix = confusion_matrix(logits, targets)
            return cls(matrix.diagonal(), matrix.sum(axis=0), matrix.sum(axis=1))
        predicted, actual = logits > 0, targets > 0
        return cls((predicted & actual).sum(axis=0), predicted.sum(axis=0), actual.sum(axis=0))

    @classmethod
    def of_entities(cls, logits_NTL: NDArray[np.float32], targets_NT: Targets) -> LabelCounts:
        """Count entities, of which a predicted one needs the tokens and the label of an actual."""
        counts = np.zeros((3, logits_NTL.shape[2] // 2), np.int64)
        for logits_TL, targets_T in zip(logits_NTL, targets_NT, strict=True):
            own_T = targets_T != IGNORED
            predicted = entities_of(logits_TL[own_T[: len(logits_TL)]].argmax(axis=1))
            actual = entities_of(targets_T[own_T])
            for row, entities in zip(counts, (predicted & actual, predicted, actual), strict=True):
                np.add.at(row, [label for label, _, _ in entities], 1)
        return cls(*counts)

    def f1(self) -> NDArray[np.float64]:
        """Return the F1 score (L,) of each label, 0 without rows and without predictions."""
        scores: NDArray[np.float64] = 2 * self.hits / np.maximum(self.predicted + self.actual, 1)
        return scores

    def table(self, labels: tuple[str, ...], unit: str) -> dict[str, dict[str, float]]:
        """Return the metrics of each label, with its number of rows or of another unit."""
        precision = self.hits / np.maximum(self.predicted, 1)
        recall = self.hits / np.maximum(self.actual, 1)
        columns = zip(precision, recall, self.f1(), self.actual, strict=True)
        return {
            label: {"precision": float(p), "recall": float(r), "f1": float(f), unit: int(n)}
            for label, (p, r, f, n) in zip(labels, columns, strict=True)
        }


def problem_of(head: ClassifierConfig) -> str:
    """Return the key of a head's metrics in METRICS."""
    return TOKENS if head.pooling == "tokens" else head.problem_type


def compute_metrics(
    problem_type: str, logits: NDArray[np.float32], targets: Targets
) -> dict[str, float]:
    """Return the metrics of logits (N, L), or (N, T, L) of tokens, by name.

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
    micro_f1 = float(2 * counts.hits.sum() / max(totals.sum(), 1))
    if problem_type == TOKENS:
        hits, predicted, actual = (int(one.sum()) for one in counts)
        precision, recall = hits / max(predicted, 1), hits / max(actual, 1)
        return {"f1": micro_f1, "precision": precision, "recall": recall}
    macro_f1 = float(counts.f1().sum() / max((totals > 0).sum(), 1))
    if problem_type == "single_label_classification":
        accuracy = float(np.mean(logits.argmax(axis=1) == targets))
        return {"accuracy": accuracy, "macro_f1": macro_f1}
    return {
        "macro_f1": macro_f1,
        "micro_f1": micro_f1,
        "accuracy": float(np.mean(((logits > 0) == (targets > 0)).all(axis=1))),
    }


def describe_predictions(
    head: ClassifierConfig, logits: NDArray[np.float32], targets: Targets, *, intervals: bool
) -> dict[str, Any]:
    """Return what metrics.json says about predictions.

    Args:
        intervals: whether to add 95 % bootstrap confidence intervals of the metrics over the rows.
    """
    problem_type = problem_of(head)
    described: dict[str, Any] = {"rows": len(targets)}
    described |= compute_metrics(problem_type, logits, targets)
    if problem_type != "regression":
        labels, unit = head.labels, "rows"
        if problem_type == TOKENS:
            labels, unit = tuple(one.removeprefix("B-") for one in labels[1::2]), "entities"
        described["labels"] = LabelCounts.of(problem_type, logits, targets).table(labels, unit)
    if problem_type == "single_label_classification":
        described["confusion_matrix"] = confusion_matrix(logits, targets).tolist()
    if intervals and problem_type != TOKENS:  # counting entities so often would take minutes
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
