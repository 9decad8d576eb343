"""Pretraining with next-sentence prediction on tiny runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.pretraining.loop import Pretraining
from fillmask_model.pretraining.objectives.next_sentence import (
    prepare_encoder,
)
from fillmask_model.pretraining.pairs import PairBatch
from fillmask_model.pretraining.short_texts import ShortTexts
from tests.model.pretraining.pair_runs import HEAD, TEMPLATE, MakeRun
from tests.model.pretraining.test_resume import interrupt_at
from tests.model.samples import (
    assert_same_weights,
    metrics_of,
    small_config,
)

# with other rates or batches, runs of the same length reach 0.5 to 1.0 by chance
LEARNABLE = {"steps": 300, "learning_rate": 5e-3, "batch_rows": 32, "evaluate_every_steps": 300}


def accuracy_after(run: Pretraining) -> float:
    """Train and return the accuracy on held-out pairs."""
    run.run()
    assert run.next_sentence is not None
    return run.next_sentence.held_out.evaluate(run.model).accuracy


@pytest.mark.slow  # 300 steps
def test_neighbours_of_one_word_are_learnt(run_of: MakeRun, no_curve: None) -> None:
    run = run_of(**LEARNABLE)
    assert accuracy_after(run) > 0.9
    last = metrics_of(run.directory)[-1]
    assert last["held_out_next_sentence_accuracy"] > 0.9
    assert last["held_out_next_sentence_loss"] < 0.3
    assert last["held_out_top_1"] > 0.5


@pytest.mark.slow  # 300 steps
def test_shuffled_labels_leave_chance(
    run_of: MakeRun, no_curve: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(**LEARNABLE)
    assert run.next_sentence is not None
    drawn, generator = run.next_sentence.training.batch, torch.Generator().manual_seed(0)

    def shuffled(number: int) -> PairBatch:
        batch = drawn(number)
        return replace(batch, labels=torch.randint(2, batch.labels.shape, generator=generator))

    monkeypatch.setattr(run.next_sentence.training, "batch", shuffled)
    assert 0.4 < accuracy_after(run) < 0.6


@pytest.mark.parametrize("changes", [{"accumulate_passes": 2}])
def test_an_interrupted_run_resumes_bit_exact(
    run_of: MakeRun, no_curve: None, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    # The head, the log and all weights are those of an uninterrupted run of several epochs.
    changes = changes | {"steps": 20, "checkpoint_every_steps": 10, "evaluate_every_steps": 10}
    whole = run_of(name="whole", **changes)
    whole.run()
    killed = run_of(name="killed", **changes)
    interrupt_at(killed, 17, monkeypatch)
    resumed = run_of(name="killed", weights_seed=9, **changes)
    resumed.resume()
    assert resumed.step == 10
    resumed.run()
    assert_same_weights(resumed.model, whole.model)
    saved = [load_checkpoint(run.directory).model for run in (whole, resumed)]
    assert saved[0].classifier is not None
    assert saved[0].classifier.config == HEAD
    assert_same_weights(saved[1], saved[0])
    logs = [(run.directory / "metrics.jsonl").read_bytes() for run in (whole, resumed)]
    assert logs[0] == logs[1]


def test_short_texts_have_no_label(run_of: MakeRun, no_curve: None) -> None:
    # Pairs and short texts alternate, and the pairs keep their order.
    run = run_of(short_share=0.5)
    text = np.tile(np.arange(5, 13, dtype=np.int32), (6, 1))
    run.batches.short_texts = ShortTexts({8: text}, batch_tokens=48, seed=0)
    assert run.next_sentence is not None
    for number in range(6):
        pairs = run.batches.pairs(number)
        if number % 2:
            assert pairs is None
            assert run.batches.tokens(number).shape == (6, 8)
        else:
            assert pairs is not None
            expected = run.next_sentence.training.batch(number // 2)
            assert torch.equal(pairs.input_ids, expected.input_ids)
    run.run()
    assert all(torch.isfinite(parameter).all() for parameter in run.model.parameters())


def test_an_encoder_gets_what_it_lacks() -> None:
    # A second preparation adds nothing.
    model, new = prepare_encoder(TiedEncoder(small_config(type_vocab_size=0)), TEMPLATE)
    assert new == ["embeddings of 2 token types", "next-sentence head"]
    assert prepare_encoder(model, TEMPLATE) == (model, [])
    assert prepare_encoder(TiedEncoder(small_config()), TEMPLATE)[1] == ["next-sentence head"]


@pytest.mark.parametrize(
    "head", [ClassifierConfig(labels=("good", "bad")), replace(HEAD, pooling="mean")]
)
def test_another_head_is_refused(head: ClassifierConfig) -> None:
    model = TiedEncoder(small_config(), head)
    with pytest.raises(ValueError, match=r"labels is_next and not_next and the pooling 'first'"):
        prepare_encoder(model, TEMPLATE)
