"""Learning rate at every step of a run."""

from __future__ import annotations

import pytest

from fillmask_model.pretraining.config import TrainConfig, learning_rate


def test_without_a_decay_length_the_rate_falls_from_the_peak() -> None:
    # The rate rises linearly during warm-up and then falls linearly to 0.
    config = TrainConfig(steps=40, warmup_steps=8, learning_rate=1e-3)
    rates = [learning_rate(config, step) for step in range(41)]
    assert rates[:9] == pytest.approx([1e-3 * step / 8 for step in range(9)])
    assert rates[8:] == pytest.approx([1e-3 * (40 - step) / 32 for step in range(8, 41)])


def test_without_warm_up_the_first_step_has_nearly_the_peak() -> None:
    # The decay begins at the first step.
    config = TrainConfig(steps=40, warmup_steps=0, learning_rate=1e-3)
    assert learning_rate(config, 1) == pytest.approx(39e-3 / 40)


def test_the_peak_is_kept_until_the_decay() -> None:
    # Warm-up takes 8 steps, the peak 22 and the decay 10.
    config = TrainConfig(steps=40, warmup_steps=8, decay_steps=10, learning_rate=1e-3)
    rates = [learning_rate(config, step) for step in range(41)]
    assert rates[:9] == pytest.approx([1e-3 * step / 8 for step in range(9)])
    assert rates[8:31] == [1e-3] * 23
    assert rates[30:] == pytest.approx([1e-3 * (40 - step) / 10 for step in range(30, 41)])


def test_warm_up_and_decay_may_fill_a_run_but_not_more() -> None:
    # A warm-up of 8 steps and a decay of 32 fill 40 steps.
    full = TrainConfig(steps=40, warmup_steps=8, decay_steps=32)
    assert learning_rate(full, 8) == full.learning_rate
    with pytest.raises(ValueError, match=r"must be at most steps, 40 \(got 8 and 33\)"):
        TrainConfig(steps=40, warmup_steps=8, decay_steps=33)


def test_pairs_need_passes_without_rounding() -> None:
    # The share of short texts in the passes may have any value below 1.
    assert TrainConfig(next_sentence=True, short_share=0.9).next_sentence
    with pytest.raises(ValueError, match=r"short_share must be below 1 .* \(got 1\.0\)"):
        TrainConfig(next_sentence=True, short_share=1.0)
    with pytest.raises(ValueError, match=r"next_sentence and round_weights, .* exclude each other"):
        TrainConfig(next_sentence=True, round_weights=True)
