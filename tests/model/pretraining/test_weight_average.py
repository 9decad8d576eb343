"""Exponential average of weights, alone and in a run."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.pretraining.weight_average import WeightAverage
from tests.model.samples import assert_same_weights, metrics_of, random_encoder, small_config


def test_each_update_moves_the_average_by_its_share() -> None:
    # With a decay of 0.75, the values 0, 8 and 4 give the averages 0, 2 and 2.5.
    model = random_encoder(small_config())
    with torch.no_grad():
        model.head_bias.fill_(0)
    average = WeightAverage(model, 0.75)
    for value, expected in ((8.0, 2.0), (4.0, 2.5)):
        with torch.no_grad():
            model.head_bias.fill_(value)
        average.update()
        assert average.model.head_bias.tolist() == pytest.approx([expected] * 61)
    assert model.head_bias.tolist() == [4.0] * 61


def test_a_run_publishes_and_judges_its_average(pretraining: Any, no_curve: None) -> None:
    # The checkpoint contains the averaged weights. Training continues from the current weights.
    plain = pretraining(name="plain")
    averaged = pretraining(name="averaged", average_decay=0.9)
    for run in (plain, averaged):
        run.run(until_step=20)
    assert_same_weights(averaged.model, plain.model)
    saved = load_checkpoint(averaged.directory).model
    assert_same_weights(saved, averaged.average.model)
    gap = saved.embeddings.word.weight - averaged.model.embeddings.word.weight
    assert gap.abs().max() > 1e-5
    losses = [
        [line["held_out_loss"] for line in metrics_of(run.directory) if "held_out_loss" in line]
        for run in (plain, averaged)
    ]
    assert losses[0] != losses[1]


def test_an_average_is_resumed_bit_exact(pretraining: Any, no_curve: None) -> None:
    # The average at step 40 is the same as without the stop at step 20.
    whole = pretraining(name="whole", average_decay=0.9)
    whole.run()
    pretraining(name="halves", average_decay=0.9).run(until_step=20)
    second = pretraining(name="halves", average_decay=0.9, weights_seed=9)
    second.resume()
    second.run()
    assert_same_weights(second.average.model, whole.average.model)
    assert_same_weights(load_checkpoint(second.directory).model, whole.average.model)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"average_decay": 1.0}, r"average_decay must be below 1 \(got 1.0\)"),
        (
            {"average_decay": -0.1},
            r"average_decay must be a finite number of at least 0 \(got -0.1\)",
        ),
        ({"average_decay": 0.9, "round_weights": True}, "must be 0 with round_weights"),
    ],
)
def test_impossible_averages_are_rejected(
    pretraining: Any, changes: dict[str, Any], message: str
) -> None:
    # The cases are a decay of 1, a negative decay and an average of rounded weights.
    with pytest.raises(ValueError, match=message):
        pretraining(**changes)
