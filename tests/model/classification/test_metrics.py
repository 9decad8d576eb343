"""Metrics, compared with independent computations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sklearn_metrics

from fillmask_model.classification.metrics import (
    bootstrap_intervals,
    compute_metrics,
    confusion_matrix,
    count_labels,
    spearman,
)
from tests.model.classification.samples import MULTI, SINGLE


def random_single(rows: int = 60, labels: int = 5) -> tuple[Any, Any]:
    """Return logits and targets in which the last label never occurs and is never predicted."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(rows, labels)).astype(np.float32)
    logits[:, -1] = -100
    return logits, rng.integers(labels - 1, size=rows)


def test_metrics_of_one_label_per_text() -> None:
    logits, targets = random_single()
    predicted = logits.argmax(axis=1)
    f1 = []
    for label in range(4):
        hits = sum(p == t == label for p, t in zip(predicted, targets, strict=True))
        f1.append(2 * hits / (sum(predicted == label) + sum(targets == label)))
    found = compute_metrics(SINGLE, logits, targets)
    assert found["accuracy"] == pytest.approx(sum(predicted == targets) / 60)
    assert found["macro_f1"] == pytest.approx(np.mean(f1))
    assert found["macro_f1"] == pytest.approx(
        sklearn_metrics.f1_score(targets, predicted, average="macro")
    )


def test_confusion_matrix_has_a_row_per_true_label() -> None:
    logits, targets = random_single()
    matrix = confusion_matrix(logits, targets)
    expected = np.zeros((5, 5), int)
    for target, predicted in zip(targets, logits.argmax(axis=1), strict=True):
        expected[target, predicted] += 1
    assert matrix.tolist() == expected.tolist()
    table = count_labels(SINGLE, logits, targets).table(tuple("abcde"))
    assert table["b"]["recall"] == pytest.approx(matrix[1, 1] / matrix[1].sum())
    assert table["b"]["precision"] == pytest.approx(matrix[1, 1] / matrix[:, 1].sum())
    assert table["b"]["rows"] == matrix[1].sum()
    assert table["e"] == {"precision": 0, "recall": 0, "f1": 0, "rows": 0}


def test_metrics_of_several_labels_per_text() -> None:
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(50, 4)).astype(np.float32)
    targets = (rng.random((50, 4)) < 0.4).astype(np.float32)
    found = compute_metrics(MULTI, logits, targets)
    predicted = (1 / (1 + np.exp(-logits)) > 0.5).astype(int)
    assert found == pytest.approx(
        {
            "accuracy": sklearn_metrics.accuracy_score(targets, predicted),
            "macro_f1": sklearn_metrics.f1_score(targets, predicted, average="macro"),
            "micro_f1": sklearn_metrics.f1_score(targets, predicted, average="micro"),
        }
    )


def test_metrics_of_numbers() -> None:
    rng = np.random.default_rng(2)
    targets = rng.integers(6, size=40).astype(np.float32)
    logits = (targets + rng.normal(size=40)).astype(np.float32)[:, None]
    found = compute_metrics("regression", logits, targets)
    squares = [(float(x) - float(y)) ** 2 for x, y in zip(logits[:, 0], targets, strict=True)]
    assert found["mean_squared_error"] == pytest.approx(sum(squares) / 40)
    assert found["spearman"] == pytest.approx(stats.spearmanr(logits[:, 0], targets).statistic)


def test_rank_correlation_of_constants_is_0() -> None:
    assert spearman(np.ones(5), np.arange(5)) == 0
    assert spearman(np.arange(5), np.arange(5) ** 3) == pytest.approx(1)
    assert spearman(np.arange(5), -np.arange(5)) == pytest.approx(-1)


def test_intervals_cover_the_metric_and_shrink_with_rows() -> None:
    widths = []
    for rows in (60, 6000):
        logits, targets = random_single(rows)
        accuracy = compute_metrics(SINGLE, logits, targets)["accuracy"]
        low, high = bootstrap_intervals(SINGLE, logits, targets)["accuracy"]
        assert low <= accuracy <= high
        widths.append(high - low)
        # normal approximation of a binomial share
        expected = 2 * 1.96 * np.sqrt(accuracy * (1 - accuracy) / rows)
        assert high - low == pytest.approx(expected, rel=0.15)
    assert widths[1] < widths[0] / 8
