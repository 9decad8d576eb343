"""Order of labels, targets, class weights, and the stratified split of labelled rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from fillmask_model.fine_tuning.labels import encode_targets, label_names
from fillmask_model.fine_tuning.split import split_dataset
from fillmask_model.fine_tuning.tables import Dataset
from tests.model.fine_tuning.samples import MULTI, SINGLE, dataset_of


def test_whole_numbers_are_in_numerical_order() -> None:
    numbers = dataset_of([(f"t{n}", n) for n in ("10", "9", "x", "2")])
    assert label_names(numbers, "label", SINGLE) == ("2", "9", "10", "x")
    assert label_names(numbers, "stars", "regression") == ("stars",)


@pytest.mark.parametrize(
    ("labels", "problem_type", "message"),
    [
        (["a", "a"], SINGLE, r"2 or more labels \(got a\); add rows"),
        ([(), ()], MULTI, r"1 or more labels \(got none\)"),
    ],
)
def test_too_few_labels_are_rejected(labels: list[Any], problem_type: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        label_names(dataset_of([("x", label) for label in labels]), "label", problem_type)


@pytest.mark.parametrize(
    ("rows", "labels", "problem_type", "targets"),
    [
        ([("x", "b"), ("y", "a")], ("a", "b"), SINGLE, [1, 0]),
        ([("x", ("b", "c")), ("y", ())], ("a", "b", "c"), MULTI, [[0, 1, 1], [0, 0, 0]]),
        ([("x", 1.5)], ("label",), "regression", [1.5]),
    ],
)
def test_targets(rows: Any, labels: tuple[str, ...], problem_type: Any, targets: Any) -> None:
    assert encode_targets(dataset_of(rows), labels, problem_type).tolist() == targets


def label_counts(dataset: Dataset) -> Counter[str]:
    return Counter(label for example in dataset.examples for label in example.labels)


def test_each_label_has_its_share_of_the_validation_rows() -> None:
    dataset = dataset_of([(f"text {i}", "rare" if i % 10 == 0 else "usual") for i in range(200)])
    training, validation = split_dataset(dataset, 0.25)
    assert label_counts(validation) == {"usual": 45, "rare": 5}
    assert label_counts(training) == {"usual": 135, "rare": 15}
    rows = [example.row for part in (training, validation) for example in part.examples]
    assert sorted(rows) == list(range(1, 201))
    assert split_dataset(dataset, 0.25) == (training, validation)


def test_each_label_keeps_a_training_row() -> None:
    dataset = dataset_of([("only", "single"), *((f"t{i}", "usual") for i in range(20))])
    training, validation = split_dataset(dataset, 0.5)
    assert label_counts(training)["single"] == 1
    assert label_counts(validation) == {"usual": 10}
    several = [("a", "b"), ("b", "c"), ("c", "d"), (), ("a",), ("d", "a")] * 5
    dataset = dataset_of([(f"t{i}", labels) for i, labels in enumerate(several)])
    training, validation = split_dataset(dataset, 0.4)
    assert set(label_counts(training)) == set("abcd")
    assert 5 <= len(validation.examples) <= 12
    numbers = dataset_of([(f"t{i}", float(i)) for i in range(50)])
    assert len(split_dataset(numbers, 0.1)[1].examples) == 5


def test_equal_texts_are_on_the_same_side() -> None:
    dataset = dataset_of([(f"t{i // 4}", "ab"[i // 4 % 2]) for i in range(160)])
    training, validation = split_dataset(dataset, 0.2)
    assert {e.text for e in training.examples}.isdisjoint(e.text for e in validation.examples)
    assert label_counts(validation) == {"a": 16, "b": 16}


def test_an_impossible_split_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"data.csv has too few rows.*\(got 2\).*--validation"):
        split_dataset(dataset_of([("t0", "a"), ("t1", "b")]), 0.5)
