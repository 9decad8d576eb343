"""Metrics, compared with scikit-learn and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.fine_tuning.metrics import compute_metrics, describe_predictions, spearman
from tests.model.fine_tuning.samples import MULTI


@pytest.fixture(scope="module")
def oracle() -> Any:
    """Metrics of scikit-learn, whose import takes a second, which other workers save."""
    from sklearn import metrics  # noqa: PLC0415

    return metrics


def random_single(rows: int = 60, labels: int = 5) -> tuple[Any, Any]:
    """Return logits and targets in which the last label never occurs and is never predicted."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(rows, labels)).astype(np.float32)
    logits[:, -1] = -100
    return logits, rng.integers(labels - 1, size=rows)


def test_metrics_of_one_label_per_text(oracle: Any) -> None:
    logits, targets = random_single()
    predicted, labels = logits.argmax(axis=1), tuple("abcde")
    found = describe_predictions(ClassifierConfig(labels=labels), logits, targets, intervals=False)
    assert found["accuracy"] == pytest.approx(oracle.accuracy_score(targets, predicted))
    assert found["macro_f1"] == pytest.approx(oracle.f1_score(targets, predicted, average="macro"))
    matrix = oracle.confusion_matrix(targets, predicted, labels=range(5))
    assert found["confusion_matrix"] == matrix.tolist()
    expected = oracle.precision_recall_fscore_support(
        targets, predicted, labels=range(5), zero_division=0
    )
    for label, *values in zip(labels, *expected, strict=True):
        names = ("precision", "recall", "f1", "rows")
        assert found["labels"][label] == pytest.approx(dict(zip(names, values, strict=True)))
    assert set(found) == {"rows", "accuracy", "macro_f1", "labels", "confusion_matrix"}


def test_metrics_of_several_labels_per_text(oracle: Any) -> None:
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(50, 4)).astype(np.float32)
    targets = (rng.random((50, 4)) < 0.4).astype(np.float32)
    head = ClassifierConfig(labels=tuple("abcd"), problem_type=MULTI)
    found = describe_predictions(head, logits, targets, intervals=False)
    predicted = (1 / (1 + np.exp(-logits)) > 0.5).astype(int)
    labels = found.pop("labels")
    assert found == pytest.approx(
        {
            "rows": 50,
            "accuracy": oracle.accuracy_score(targets, predicted),
            "macro_f1": oracle.f1_score(targets, predicted, average="macro"),
            "micro_f1": oracle.f1_score(targets, predicted, average="micro"),
        }
    )
    assert [labels[one]["recall"] for one in "abcd"] == pytest.approx(
        oracle.recall_score(targets, predicted, average=None).tolist()
    )


def test_metrics_of_numbers(oracle: Any) -> None:
    rng = np.random.default_rng(2)
    targets = rng.integers(6, size=40).astype(np.float32)
    logits = (targets + rng.normal(size=40)).astype(np.float32)[:, None]
    found = compute_metrics("regression", logits, targets)
    assert found["mean_squared_error"] == pytest.approx(
        oracle.mean_squared_error(targets.astype(np.float64), logits[:, 0].astype(np.float64))
    )
    assert found["spearman"] == pytest.approx(
        scipy.stats.spearmanr(logits[:, 0], targets).statistic
    )
    assert spearman(np.ones(5), np.arange(5)) == 0  # the correlation of a constant is not defined


def test_intervals_are_those_of_a_binomial_share() -> None:
    logits, targets = random_single(960)
    head = ClassifierConfig(labels=tuple("abcde"))
    found = describe_predictions(head, logits, targets, intervals=True)
    (low, high), accuracy = found["intervals"]["accuracy"], found["accuracy"]
    assert low <= accuracy <= high
    normal = 2 * 1.96 * np.sqrt(accuracy * (1 - accuracy) / 960)
    assert high - low == pytest.approx(normal, rel=0.1)
    assert (set(found["intervals"]), found["confidence"]) == ({"accuracy", "macro_f1"}, 0.95)
