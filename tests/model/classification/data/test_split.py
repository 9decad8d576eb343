"""Stratified split and counts of repeated texts."""

from __future__ import annotations

from collections import Counter

import pytest

from fillmask_model.classification.data.split import (
    describe_repeated_texts,
    describe_shared_texts,
    split_dataset,
)
from fillmask_model.fine_tuning.tables import Dataset
from tests.model.classification.samples import dataset_of


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


def test_a_label_with_one_row_stays_in_training() -> None:
    dataset = dataset_of([("only", "single"), *((f"t{i}", "usual") for i in range(20))])
    training, validation = split_dataset(dataset, 0.5)
    assert label_counts(training)["single"] == 1
    assert label_counts(validation) == {"usual": 10}


def test_labels_of_several_per_text_all_stay_in_training() -> None:
    pairs = [("a", "b"), ("b", "c"), ("c", "d"), (), ("a",), ("d", "a")] * 5
    dataset = dataset_of([(f"t{i}", labels) for i, labels in enumerate(pairs)])
    training, validation = split_dataset(dataset, 0.4)
    assert set(label_counts(training)) == set("abcd")
    assert 5 <= len(validation.examples) <= 12


def test_equal_texts_are_on_the_same_side() -> None:
    dataset = dataset_of([(f"t{i // 4}", "ab"[i // 4 % 2]) for i in range(160)])
    training, validation = split_dataset(dataset, 0.2)
    assert {e.text for e in training.examples}.isdisjoint(e.text for e in validation.examples)
    assert label_counts(validation) == {"a": 16, "b": 16}


def test_numbers_are_split_by_the_share() -> None:
    dataset = dataset_of([(f"t{i}", float(i)) for i in range(50)])
    assert len(split_dataset(dataset, 0.1)[1].examples) == 5


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5])
def test_shares_outside_0_and_1_are_rejected(share: float) -> None:
    with pytest.raises(ValueError, match=f"above 0 and below 1 .got {share}"):
        split_dataset(dataset_of([("x", "a"), ("y", "a")]), share)


def test_too_few_rows_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"data.csv has too few rows.*\(got 2\).*--validation"):
        split_dataset(dataset_of([("x", "a"), ("y", "b")]), 0.5)


def test_repeated_texts_are_counted() -> None:
    dataset = dataset_of([("x", "a"), ("y", "a"), ("x", "a"), ("x", "b"), ("z", "b")])
    (said,) = describe_repeated_texts(dataset)
    assert "that repeat the text of an earlier row: 2 (with another label: 1)" in said
    assert describe_repeated_texts(dataset_of([("x", "a"), ("y", "a")])) == []
    (said,) = describe_shared_texts(dataset, dataset_of([("x", "a"), ("new", "a")], "test.csv"))
    assert said == "rows of test.csv with a text that the training rows also have: 1"
    assert describe_shared_texts(dataset, dataset_of([("new", "a")])) == []
