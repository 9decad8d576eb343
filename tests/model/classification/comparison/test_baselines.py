"""Accuracy of the majority class and of a bag of words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fillmask_model.classification.comparison.baselines import (
    bag_of_words_accuracy,
    majority_accuracy,
)
from tests.model.classification.samples import dataset_of

TRAINING = list(dataset_of([("red pink", "a"), ("blue red", "a"), ("cat fox", "b")]).examples)
VALIDATION = list(dataset_of([("pink blue", "a"), ("a fox", "b"), ("one cat", "b")]).examples)


def test_the_majority_comes_from_the_training_rows() -> None:
    assert majority_accuracy(np.array([1, 1, 0]), np.array([0, 0, 1, 0])) == 0.25


def test_words_decide() -> None:
    targets, expected = np.array([0, 0, 1]), np.array([0, 1, 1])
    assert bag_of_words_accuracy(TRAINING, targets, VALIDATION, expected) == 1.0
    assert bag_of_words_accuracy(TRAINING, targets, VALIDATION, 1 - expected) == 0.0


def test_both_texts_of_a_pair_count() -> None:
    pairs = [
        [replace(e, text="same", text_pair=e.text) for e in rows] for rows in (TRAINING, VALIDATION)
    ]
    accuracy = bag_of_words_accuracy(pairs[0], np.array([0, 0, 1]), pairs[1], np.array([0, 1, 1]))
    assert accuracy == 1.0


def test_a_single_label_predicts_itself() -> None:
    accuracy = bag_of_words_accuracy(TRAINING, np.zeros(3, int), VALIDATION, np.array([0, 1, 1]))
    assert accuracy == pytest.approx(1 / 3)
