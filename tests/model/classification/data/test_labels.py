"""Order of labels, targets and class weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fillmask_model.classification.data.dataset import Columns
from fillmask_model.classification.data.labels import balanced_weights, encode_targets, label_names
from tests.model.classification.samples import MULTI, SINGLE, dataset_of


def test_whole_numbers_are_in_numerical_order() -> None:
    numbers = dataset_of([(f"t{n}", n) for n in ("10", "9", "x", "2")])
    assert label_names(numbers, Columns(), SINGLE) == ("2", "9", "10", "x")
    assert label_names(numbers, Columns(label="stars"), "regression") == ("stars",)


@pytest.mark.parametrize(
    ("labels", "problem_type", "message"),
    [
        (["a", "a"], SINGLE, r"2 or more labels \(got a\); add rows"),
        ([(), ()], MULTI, r"1 or more labels \(got none\)"),
    ],
)
def test_too_few_labels_are_rejected(labels: list[Any], problem_type: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        label_names(dataset_of([("x", label) for label in labels]), Columns(), problem_type)


def test_targets_of_each_problem_type() -> None:
    single = encode_targets(dataset_of([("x", "b"), ("y", "a")]), ("a", "b"), SINGLE)
    assert single.tolist() == [1, 0]
    several = encode_targets(dataset_of([("x", ("b", "c")), ("y", ())]), ("a", "b", "c"), MULTI)
    assert several.tolist() == [[0, 1, 1], [0, 0, 0]]
    numbers = encode_targets(dataset_of([("x", 1.5)]), ("label",), "regression")
    assert numbers.tolist() == [1.5]


def test_labels_without_training_rows_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"test.csv, row 2: the training rows have no label 'c'"):
        encode_targets(dataset_of([("x", "a"), ("y", "c")], "test.csv"), ("a", "b"), SINGLE)


def test_balanced_weights_by_hand() -> None:
    single = balanced_weights(np.array([0, 0, 0, 1]), 2, SINGLE)
    np.testing.assert_allclose(single, [4 / (2 * 3), 4 / (2 * 1)])
    several = balanced_weights(np.array([[1, 0], [1, 1], [1, 0], [0, 0]], np.float32), 2, MULTI)
    np.testing.assert_allclose(several, [1 / 3, 3 / 1])


def test_impossible_balanced_weights_are_rejected() -> None:
    with pytest.raises(ValueError, match="none for regression"):
        balanced_weights(np.array([1.0, 2.0], np.float32), 1, "regression")
    with pytest.raises(ValueError, match="every training row has the same label"):
        balanced_weights(np.ones((3, 1), np.float32), 1, MULTI)
