"""Hyperparameters, and how the rates change with the steps."""

from __future__ import annotations

from typing import Any

import pytest

from fillmask_model.fine_tuning.config import ClassifyConfig, SparseConfig


def test_learning_rate_rises_and_decays_linearly() -> None:
    config = ClassifyConfig(learning_rate=1.0, warmup_share=0.2)
    rates = [config.learning_rate_at(step, 10) for step in range(1, 11)]
    assert rates == pytest.approx([0.5, 1] + [n / 9 for n in range(8, 0, -1)])
    without = ClassifyConfig(learning_rate=1.0, warmup_share=0.0)
    assert [without.learning_rate_at(step, 4) for step in range(1, 5)] == pytest.approx(
        [4 / 5, 3 / 5, 2 / 5, 1 / 5]
    )


def test_penalties_rise_with_the_square_of_the_step() -> None:
    config = SparseConfig(penalty_share=0.5)
    assert [config.penalty_at(step, 8) for step in range(1, 9)] == pytest.approx(
        [1 / 16, 4 / 16, 9 / 16, 1, 1, 1, 1, 1]
    )
    assert SparseConfig(penalty_share=0.0).penalty_at(1, 8) == 1


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (ClassifyConfig, {"epochs": 0}, r"epochs must be a whole number of at least 1 \(got 0\)"),
        (ClassifyConfig, {"learning_rate": 0.0}, "learning_rate must be a finite number above 0"),
        (ClassifyConfig, {"dropout": 1.0}, r"dropout must be below 1 \(got 1.0\)"),
        (ClassifyConfig, {"warmup_share": 1.5}, "warmup_share must be below 1"),
        (SparseConfig, {"penalty_share": 1.0}, r"penalty_share must be below 1 \(got 1.0\)"),
        (SparseConfig, {"query_penalty": -0.1}, "query_penalty must be a finite number of at lea"),
    ],
)
def test_values_outside_their_range_are_rejected(
    kind: type[ClassifyConfig | SparseConfig], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**changes)


def test_values_at_the_end_of_their_range() -> None:
    ClassifyConfig(seed=0, dropout=0.0, warmup_share=0.0, weight_decay=0.0)
    SparseConfig(query_penalty=0.0, document_penalty=0.0, penalty_share=0.0, weight_decay=0.0)
