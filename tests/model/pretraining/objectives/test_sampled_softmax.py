"""Cross-entropy over samples of the vocabulary, compared with NumPy and the whole vocabulary."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from fillmask_model.pretraining.config import TrainConfig
from fillmask_model.pretraining.objectives.cross_entropy import summed_cross_entropy
from fillmask_model.pretraining.objectives.sampled_softmax import (
    VocabularySample,
    VocabularySampler,
)
from tests.model.pretraining.objectives.losses import assert_same_loss_and_gradients, inputs
from tests.model.samples import metrics_of

FREQUENT = torch.tensor([3, 7, 20, 30])


def draw(
    labels: torch.Tensor, sampled_tokens: int, seed: int = 0, *, frequent: torch.Tensor = FREQUENT
) -> VocabularySample:
    """Draw a sample of a vocabulary of 31 tokens."""
    sampler = VocabularySampler(frequent, 31, sampled_tokens)
    return sampler(labels, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("frequent", [FREQUENT, torch.arange(31)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_a_sample_of_all_tokens_gives_the_exact_loss_and_gradients(
    *, has_bias: bool, frequent: torch.Tensor
) -> None:
    # The tolerance is 1e-12 in float64.
    hidden, table, bias, labels = inputs(9, torch.float64)
    given = [hidden, table, *([bias] if has_bias else [])]
    arguments = (hidden, table, bias if has_bias else None, labels)
    sample = draw(labels, 31, frequent=frequent)
    exact, sampled = summed_cross_entropy(*arguments), sample.cross_entropy(*arguments)
    assert_same_loss_and_gradients(sampled, exact, given)


def test_a_random_token_stands_for_several_tokens() -> None:
    # The oracle is NumPy in float64. The weights of the random tokens are in float32.
    hidden, table, bias, labels = inputs(9, torch.float64)
    sample = draw(labels, 6)
    kept = sorted({*FREQUENT.tolist(), *labels.tolist()})
    random = sorted({*sample.ids.tolist()} - {*kept})
    assert len(random) == 6
    logits = (hidden @ table.T + bias).detach().numpy()
    sums = np.exp(logits[:, kept]).sum(1)
    sums += (31 - len(kept)) / 6 * np.exp(logits[:, random]).sum(1)
    expected = (np.log(sums) - logits[np.arange(9), labels.numpy()]).sum()
    loss = sample.cross_entropy(hidden, table, bias, labels)
    assert loss.item() == pytest.approx(expected, abs=1e-6)


def test_gradients_of_a_sample_are_those_of_differences() -> None:
    hidden, table, bias, labels = inputs(4, torch.float64)
    sample = draw(labels, 5)
    assert torch.autograd.gradcheck(
        lambda h, t, b: sample.cross_entropy(h, t, b, labels), (hidden, table, bias)
    )


def test_the_mean_over_samples_is_the_sum_over_the_vocabulary() -> None:
    # 4,000 samples of 6 tokens estimate the normalizer of a position to 1 %.
    hidden, table, bias, labels = (part.detach() for part in inputs(1, torch.float64))
    logits = (hidden @ table.T + bias)[0]
    estimates = [
        math.exp(float(draw(labels, 6, seed).cross_entropy(hidden, table, bias, labels)))
        for seed in range(4000)
    ]
    expected = float((logits - logits[labels]).exp().sum())
    assert np.mean(estimates) == pytest.approx(expected, rel=0.01)
    assert np.std(estimates) > 0.05 * expected  # single samples differ


def test_a_sample_contains_labels_and_frequent_tokens() -> None:
    # The ids are in ascending order, and only random ids have an offset.
    labels = torch.tensor([9, 3, 9, 14])
    sample = draw(labels, 8)
    ids = sample.ids.tolist()
    assert ids == sorted(set(ids))
    assert {3, 7, 9, 14, 20, 30} < set(ids)
    assert len(ids) == 6 + 8
    offsets = dict(zip(ids, sample.offsets.tolist(), strict=True))
    assert [offsets.pop(i) for i in (3, 7, 9, 14, 20, 30)] == [0.0] * 6
    assert list(offsets.values()) == pytest.approx([math.log(25 / 8)] * 8)


def test_frequent_tokens_are_those_of_the_rows() -> None:
    rows = np.array([[5, 5, 2, 9], [9, 5, 7, 2]], np.uint16)
    sampler = VocabularySampler.from_rows(rows, 12, frequent_tokens=3, sampled_tokens=1)
    assert sampler.frequent_ids.tolist() == [5, 2, 9]


def test_the_decay_uses_the_whole_vocabulary(pretraining: Any, no_curve: None) -> None:
    # Steps 7 to 10 are the decay.
    sizes = {"steps": 10, "decay_steps": 4, "sampled_tokens": 3, "frequent_tokens": 2}
    run = pretraining(**sizes, accumulate_passes=2)
    sampler, steps = run.sampler, []

    def count(*arguments: Any) -> VocabularySample:
        steps.append(run.step + 1)
        drawn: VocabularySample = sampler(*arguments)
        return drawn

    run.sampler = count
    run.run()
    assert steps == [step for step in range(1, 7) for _ in range(2)]


@pytest.mark.slow  # 150 steps
def test_a_run_learns_from_samples(pretraining: Any, no_curve: None) -> None:
    # The held-out loss over the whole vocabulary halves.
    changes = {"decay_steps": 10, "sampled_tokens": 6, "frequent_tokens": 4}
    run = pretraining(
        steps=150, learning_rate=1e-2, evaluate_every_steps=150, **changes, held_out_rows=32
    )
    run.run()
    last = metrics_of(run.directory)[-1]
    assert last["held_out_loss"] < 0.5 * math.log(run.model.config.vocab_size)


def test_impossible_samples_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"decay_steps must be at least 1 .* \(got 0\)"):
        TrainConfig(sampled_tokens=5)
    with pytest.raises(ValueError, match=r"sampled_tokens must be 0 .* \(got 5\)"):
        TrainConfig(decay_steps=10, sampled_tokens=5, next_sentence=True)
    with pytest.raises(ValueError, match=r"sampled_tokens must be 0 .* \(got 5\)"):
        TrainConfig(decay_steps=10, sampled_tokens=5, round_weights=True)
    with pytest.raises(ValueError, match="frequent_tokens must be a whole number of at least 1"):
        TrainConfig(frequent_tokens=0)
