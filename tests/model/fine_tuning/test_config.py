"""Hyperparameters and learning rate schedule of fine-tuning."""

from __future__ import annotations

from typing import Any

import pytest

from fillmask_model.classification.config import ClassifyConfig


def test_learning_rate_rises_and_decays_linearly() -> None:
    config = ClassifyConfig(learning_rate=1.0, warmup_share=0.2)
    rates = [config.learning_rate_at(step, 10) for step in range(1, 11)]
    assert rates == pytest.approx([0.5, 1] + [n / 9 for n in range(8, 0, -1)])
    without = ClassifyConfig(learning_rate=1.0, warmup_share=0.0)
    assert [without.learning_rate_at(step, 4) for step in range(1, 5)] == pytest.approx(
        [4 / 5, 3 / 5, 2 / 5, 1 / 5]
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, r"epochs must be a whole number of at least 1 \(got 0\)"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"learning_rate": 0.0}, "learning_rate must be a finite number above 0"),
        ({"learning_rate": float("inf")}, "learning_rate must be a finite number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate must be a finite number above 0"),
        ({"weight_decay": -0.1}, "weight_decay must be a finite number of at least 0"),
        ({"dropout": 1.0}, r"dropout must be below 1 \(got 1.0\)"),
        ({"warmup_share": 1.5}, "warmup_share must be below 1"),
    ],
)
def test_values_outside_their_range_are_rejected(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClassifyConfig(**changes)
