"""Ranges of hyperparameters, and how rates change with the steps."""

from __future__ import annotations

from typing import Any

import pytest

from fillmask_model.fine_tuning.config import ClassifyConfig, SparseConfig
from fillmask_model.hyperparameters import Hyperparameters
from fillmask_model.pretraining.config import TrainConfig

NAN = float("nan")


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (TrainConfig, {"steps": 0}, r"steps must be a whole number of at least 1 \(got 0\)"),
        (TrainConfig, {"steps": 10.5}, r"steps must be a whole number of at least 1 \(got 10\.5\)"),
        (TrainConfig, {"seed": -1}, r"seed must be a whole number of at least 0 \(got -1\)"),
        (TrainConfig, {"row_tokens": 7}, r"row_tokens must be .* at least 8 \(got 7\)"),
        (TrainConfig, {"clip_norm": 0.0}, r"clip_norm must be a finite number above 0 \(got 0\.0"),
        (TrainConfig, {"learning_rate": NAN}, r"learning_rate must be a finite number above 0"),
        (TrainConfig, {"weight_decay": -0.1}, "weight_decay must be a finite number of at least 0"),
        (TrainConfig, {"select_rate": 0.0}, "select_rate must be a finite number above 0"),
        (TrainConfig, {"select_rate": 1.0}, r"select_rate must be below 1 \(got 1\.0\)"),
        (TrainConfig, {"short_share": 1.5}, r"short_share must be at most 1 \(got 1\.5\)"),
        (TrainConfig, {"warmup_steps": 10_000}, r"must be below steps, 10000 \(got 10000\)"),
        (
            TrainConfig,
            {"steps": 40, "warmup_steps": 8, "decay_steps": 33},
            r"must be at most steps, 40 \(got 8 and 33\)",
        ),
        (TrainConfig, {"next_sentence": True, "short_share": 1.0}, r"below 1 .* \(got 1\.0\)"),
        (TrainConfig, {"next_sentence": True, "round_weights": True}, "exclude each other"),
        (ClassifyConfig, {"warmup_share": 1.5}, "warmup_share must be below 1"),
        (ClassifyConfig, {"dropout": 1.0}, r"dropout must be below 1 \(got 1.0\)"),
        (SparseConfig, {"penalty_share": 1.0}, r"penalty_share must be below 1 \(got 1.0\)"),
        (SparseConfig, {"query_penalty": -0.1}, "query_penalty must be a finite number of at lea"),
    ],
)
def test_values_outside_their_range_are_rejected(
    kind: type[Hyperparameters], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**changes)


def test_values_at_the_end_of_their_range() -> None:
    TrainConfig(seed=0, warmup_steps=0, weight_decay=0, short_share=1.0, row_tokens=8)
    TrainConfig(next_sentence=True, short_share=0.9)
    ClassifyConfig(seed=0, dropout=0.0, warmup_share=0.0, weight_decay=0.0)
    SparseConfig(query_penalty=0.0, document_penalty=0.0, penalty_share=0.0, weight_decay=0.0)


@pytest.mark.parametrize(
    ("warmup", "decay", "expected"),
    [
        (2, 0, [0.5, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8, 0]),
        (0, 0, [9 / 10, 8 / 10, 7 / 10, 6 / 10, 5 / 10, 4 / 10, 3 / 10, 2 / 10, 1 / 10, 0]),
        (2, 4, [0.5, 1, 1, 1, 1, 1, 3 / 4, 2 / 4, 1 / 4, 0]),
        (2, 8, [0.5, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8, 0]),
    ],
)
def test_pretraining_rises_keeps_its_peak_and_decays(
    warmup: int, decay: int, expected: list[float]
) -> None:
    # Without a decay length, the rate falls from the peak.
    config = TrainConfig(steps=10, warmup_steps=warmup, decay_steps=decay, learning_rate=1.0)
    assert [config.learning_rate_at(step) for step in range(1, 11)] == pytest.approx(expected)


def test_fine_tuning_rises_and_decays_linearly() -> None:
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
