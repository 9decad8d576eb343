"""Pretraining loop on tiny runs."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from torch import Tensor

from fillmask_model import optimization
from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.pretraining.masking import MaskedBatch
from tests.model.samples import ROW_TOKENS, assert_same_weights, metrics_of, random_ids


@pytest.fixture
def fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Computation in float32, even on a CPU with bfloat16, for a tolerance of 1e-5 nats."""
    monkeypatch.setattr(optimization, "has_bfloat16", lambda _: False)


def test_a_run_learns_and_leaves_what_it_promised(pretraining: Any, no_curve: None) -> None:
    # The loss is above 0.7 ln V at step 10, and 0.7 of that at step 60.
    # The run writes a log and a checkpoint.
    run = pretraining(steps=60, learning_rate=1e-2, evaluate_every_steps=30)
    run.run()
    lines = metrics_of(run.directory)
    losses = {line["step"]: line["loss"] for line in lines if "loss" in line}
    held_out = {line["step"]: line for line in lines if "held_out_loss" in line}
    assert list(losses) == list(range(10, 61, 10))
    assert list(held_out) == [30, 60]
    assert losses[10] > 0.7 * math.log(run.model.config.vocab_size)
    assert losses[60] < 0.7 * losses[10]
    assert held_out[60]["held_out_top_1"] > 0.25
    assert held_out[60]["held_out_perplexity"] == pytest.approx(
        math.exp(held_out[60]["held_out_loss"])
    )
    assert lines[-1]["tokens"] == 60 * 8 * ROW_TOKENS
    assert_same_weights(load_checkpoint(run.directory).model, run.model)
    saved = Tokenizer.from_file(str(run.directory / "tokenizer.json"))
    assert saved.get_vocab_size() == run.model.config.vocab_size


def test_a_seed_decides_a_run(pretraining: Any, no_curve: None) -> None:
    # The runs start from equal weights.
    runs = [pretraining(name=f"{i}", seed=seed, steps=10) for i, seed in enumerate((0, 0, 1))]
    for run in runs:
        run.run()
    assert_same_weights(runs[0].model, runs[1].model)
    difference = runs[0].model.embeddings.word.weight - runs[2].model.embeddings.word.weight
    assert difference.abs().max() > 1e-5


def test_training_has_the_loss_that_logits_have(pretraining: Any, fp32: None) -> None:
    # The first step's loss is the encoder's cross-entropy at the selected positions.
    run = pretraining(select_rate=0.5)
    masked = run.masker(
        run.batches.batch(0)[0], torch.Generator().manual_seed(run.config.seed * 1_000_003)
    )
    with torch.no_grad():
        logits = run.model(masked.input_ids, masked.selected)
    expected = float(torch.nn.functional.cross_entropy(logits, masked.labels))
    assert run._train_step() == pytest.approx(expected, abs=1e-5)


def by_content(input_ids: Tensor, _: torch.Generator) -> MaskedBatch:
    """Mask every even id above 4 with id 4, without randomness."""
    selected = (input_ids % 2 == 0) & (input_ids > 4)
    return MaskedBatch(input_ids.masked_fill(selected, 4), selected, input_ids[selected])


def test_accumulated_passes_make_the_gradient_of_one_batch(pretraining: Any, fp32: None) -> None:
    # Two passes of 8 rows give the loss and the gradient of one pass of 16, to 1e-5.
    together = pretraining(name="together", batch_rows=16)
    apart = pretraining(name="apart", batch_rows=8, accumulate_passes=2)
    together.batches.rows = apart.batches.rows = random_ids((56, ROW_TOKENS), 50).int().numpy()
    ids = [apart.batches.batch(number)[0] for number in (0, 1)]
    halves = [int(by_content(one, torch.Generator()).selected.sum()) for one in ids]
    assert halves[0] != halves[1]  # with equal halves, a mean of two means passes too
    together.masker = apart.masker = by_content
    assert apart._train_step() == pytest.approx(together._train_step(), abs=1e-5)
    pairs = zip(apart.model.parameters(), together.model.parameters(), strict=True)
    for accumulated, whole in pairs:
        torch.testing.assert_close(accumulated.grad, whole.grad, rtol=0, atol=1e-5)


def test_a_step_clips_the_gradient_and_decays_only_matrices(pretraining: Any) -> None:
    # The table is one entry of the optimizer.
    run = pretraining(clip_norm=1e-3, weight_decay=0.3)
    run._train_step()
    squares = sum(float((p.grad**2).sum()) for p in run.model.parameters())
    assert math.sqrt(squares) == pytest.approx(1e-3, rel=1e-3)
    groups = run.optimizer.param_groups
    entries = [id(parameter) for group in groups for parameter in group["params"]]
    assert sorted(entries) == sorted(id(p) for p in run.model.parameters())
    decays = {parameter.ndim > 1: g["weight_decay"] for g in groups for parameter in g["params"]}
    assert decays == {True: 0.3, False: 0.0}


def test_every_epoch_takes_every_row_once_in_its_own_order(pretraining: Any) -> None:
    # An epoch of 56 rows has seven batches of 8 rows.
    run = pretraining()
    batches = [run.batches.batch(number)[0] for number in range(14)]
    epochs = [torch.cat(batches[:7]), torch.cat(batches[7:])]
    for epoch in epochs:
        assert sorted(epoch.tolist()) == sorted(run.batches.rows.tolist())
    assert not torch.equal(*epochs)


def test_steps_of_several_passes_share_no_row(pretraining: Any) -> None:
    # Three steps of two passes take 48 different rows of an epoch of 56. Each step has other masks.
    run = pretraining(accumulate_passes=2)
    run.batches.rows = random_ids((56, ROW_TOKENS), 50).int().numpy()
    taken: list[tuple[int, ...]] = []
    seeds: list[int] = []

    def look(input_ids: Tensor, generator: torch.Generator) -> MaskedBatch:
        taken.extend(map(tuple, input_ids.tolist()))
        seeds.append(generator.initial_seed())
        return by_content(input_ids, generator)

    run.masker = look
    for run.step in range(3):
        run._train_step()
    assert len(taken) == len(set(taken)) == 48
    assert seeds == [0, 0, 1, 1, 2, 2]


def test_a_step_with_nothing_selected_goes_on(pretraining: Any, no_curve: None) -> None:
    # The loss of a step without selected tokens is 0.
    run = pretraining(steps=10, row_tokens=16, batch_rows=1, select_rate=0.02)
    run.run()
    assert run.step == 10
    assert all(torch.isfinite(parameter).all() for parameter in run.model.parameters())


def test_a_loss_that_is_no_number_stops_the_run(pretraining: Any, no_curve: None) -> None:
    # The run stops before it changes or saves weights.
    run = pretraining()
    with torch.no_grad():
        run.model.head_bias[3] = math.inf
    with pytest.raises(FloatingPointError, match="at step 1"):
        run.run()
    assert torch.isfinite(run.model.embeddings.word.weight).all()
    assert not (run.directory / "model.safetensors").exists()
