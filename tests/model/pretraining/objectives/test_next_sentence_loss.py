"""Loss and evaluation of next-sentence prediction, compared with float64 NumPy and transformers."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import BertConfig, BertForPreTraining

from fillmask_model.bootstrap import CONFIDENCE
from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.pretraining.loop import Pretraining
from fillmask_model.pretraining.masking import MaskedBatch
from fillmask_model.pretraining.objectives.next_sentence import (
    PairScores,
    evaluate_pairs,
    prepare_encoder,
    summed_losses,
)
from tests.model import oracle
from tests.model.pretraining.pair_runs import HEAD, TEMPLATE, MakeRun
from tests.model.samples import (
    in_float64,
    randomise,
)


def oracle_losses(model: TiedEncoder, run: Pretraining, number: int) -> tuple[float, float]:
    """Compute the mean losses of tokens and of labels pair by pair in float64 NumPy."""
    weights, config = in_float64(model.state_dict()), model.config
    assert run.next_sentence is not None
    pairs = run.next_sentence.training.batch(number)
    generator = torch.Generator().manual_seed(run.config.seed * 1_000_003 + run.step)
    masked = run.masker(pairs.input_ids, generator)
    token_losses: list[float] = []
    pair_losses: list[float] = []
    labels = iter(masked.labels.tolist())
    for row, label in enumerate(pairs.labels.tolist()):
        tokens = int(pairs.attention_mask[row].sum())
        ids, types = masked.input_ids[row, :tokens].numpy(), pairs.token_types[row, :tokens].numpy()
        hidden = oracle.encoder_hidden(config, weights, ids, types)
        for state in hidden[masked.selected[row, :tokens].numpy()]:
            (logits,) = oracle.encoder_logits(config, weights, [state])
            token_losses.append(-oracle.log_softmax(logits)[next(labels)])
        logits = oracle.label_logits(config, HEAD, weights, hidden)
        pair_losses.append(-oracle.log_softmax(logits)[label])
    return math.fsum(token_losses) / len(token_losses), math.fsum(pair_losses) / len(pair_losses)


def test_the_loss_is_the_oracles(run_of: MakeRun) -> None:
    # The loss agrees to 1e-5 with the sum of both means in float64 NumPy on unpadded pairs.
    run = run_of(select_rate=0.3)
    randomise(run.model, seed=1)
    assert run.model.classifier is not None
    with torch.no_grad():
        run.model.classifier.output.weight *= 5  # labels far from equally likely
    token_loss, pair_loss = oracle_losses(run.model, run, 0)
    assert abs(pair_loss - math.log(2)) > 0.1
    assert run._train_step() == pytest.approx(token_loss + pair_loss, abs=1e-5)


def test_the_loss_is_that_of_transformers(run_of: MakeRun, tmp_path: Path) -> None:
    # The loss of a published checkpoint with both heads agrees with transformers to 1e-5.
    run = run_of(select_rate=0.3)
    assert run.next_sentence is not None
    sizes: dict[str, Any] = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
    config = BertConfig(vocab_size=13, intermediate_size=40, max_position_embeddings=17, **sizes)
    published = BertForPreTraining(config)
    published.train(mode=False)
    randomise(published, seed=1)
    published.save_pretrained(tmp_path / "published")
    (tmp_path / "published" / "tokenizer.json").write_bytes(run.tokenizer_json)
    loaded = load_checkpoint(tmp_path / "published").model
    model, new = prepare_encoder(loaded, TEMPLATE)
    assert new == []
    pairs = run.next_sentence.training.batch(0)
    masked = run.masker(pairs.input_ids, torch.Generator().manual_seed(0))
    labels = torch.full_like(pairs.input_ids, -100)
    labels[masked.selected] = masked.labels
    with torch.inference_mode():
        expected = published(
            input_ids=masked.input_ids,
            attention_mask=pairs.attention_mask,
            token_type_ids=pairs.token_types,
            labels=labels,
            next_sentence_label=pairs.labels,
        ).loss
        token_loss, pair_loss = summed_losses(model, masked, pairs)
    ours = token_loss / len(masked.labels) + pair_loss / len(pairs.labels)
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-5)


def test_padding_changes_no_masked_logit(run_of: MakeRun) -> None:
    # Additional padding with any ids changes losses by less than 1e-5.
    run = run_of()
    assert run.next_sentence is not None
    randomise(run.model, seed=1)
    pairs = run.next_sentence.training.batch(0)
    short = replace(pairs, **{n: getattr(pairs, n)[:, :12] for n in ("input_ids", "token_types")})
    pairs = replace(short, attention_mask=pairs.attention_mask[:, :12])
    junk = torch.full((16, 4), 9)
    padded = replace(
        pairs,
        input_ids=torch.cat([pairs.input_ids, junk], 1),
        token_types=torch.cat([pairs.token_types, torch.ones_like(junk)], 1),
        attention_mask=torch.cat([pairs.attention_mask, torch.zeros_like(junk)], 1),
    )
    masked = run.masker(pairs.input_ids, torch.Generator().manual_seed(0))
    wider = replace(
        masked,
        input_ids=torch.cat([masked.input_ids, junk], 1),
        selected=torch.cat([masked.selected, torch.zeros_like(junk, dtype=torch.bool)], 1),
    )
    with torch.inference_mode():
        arguments = (masked.input_ids, masked.selected, pairs.attention_mask, pairs.token_types)
        logits = run.model(*arguments)
        torch.testing.assert_close(
            run.model(wider.input_ids, wider.selected, padded.attention_mask, padded.token_types),
            logits,
            rtol=0,
            atol=1e-5,
        )
        for bare, with_padding in zip(
            summed_losses(run.model, masked, pairs),
            summed_losses(run.model, wider, padded),
            strict=True,
        ):
            torch.testing.assert_close(with_padding, bare, rtol=0, atol=1e-4)


def odd_tokens(input_ids: torch.Tensor, _: torch.Generator) -> MaskedBatch:
    """Select every token with an odd id above 4, without randomness."""
    selected = (input_ids % 2 == 1) & (input_ids > 4)
    return MaskedBatch(input_ids, selected, input_ids[selected])


def test_accumulated_passes_make_the_gradient_of_one_batch(run_of: MakeRun) -> None:
    # Two passes of 8 pairs give the loss and the gradient of one pass of 16, to 1e-5.
    together, apart = run_of(batch_rows=16), run_of(batch_rows=8, accumulate_passes=2)
    for run in (together, apart):
        run.masker = odd_tokens  # type: ignore[assignment]
    losses = [run._train_step() for run in (together, apart)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)
    for one, two in zip(together.model.parameters(), apart.model.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad, rtol=0, atol=1e-5)


def scores_of(correct: NDArray[np.bool_], documents: NDArray[np.int64]) -> PairScores:
    """Return scores with a loss of 0.5 nats per pair."""
    return PairScores(np.full(len(correct), 0.5), correct, documents)


def test_intervals_are_as_wide_as_sampling_theory_says() -> None:
    # Copies of a pair in its document do not make the interval narrower.
    correct = np.random.default_rng(0).random(2_000) < 0.7
    single = scores_of(correct, np.arange(2_000)).metrics()
    assert single.accuracy == correct.mean()
    assert (single.loss, single.pairs, CONFIDENCE) == (0.5, 2_000, 0.95)
    for together in (1, 10):
        metrics = scores_of(
            np.repeat(correct, together), np.repeat(np.arange(2_000), together)
        ).metrics()
        low, high = metrics.accuracy_interval
        assert (high - low) / 2 == pytest.approx(1.96 * math.sqrt(0.7 * 0.3 / 2_000), rel=0.1)
        assert low < metrics.accuracy < high


@pytest.mark.parametrize("training", [True, False])
def test_evaluation_reads_unmasked_pairs(
    run_of: MakeRun,
    training: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    # Loss and accuracy are those of the classifier's logits, for any number of batches.
    run = run_of()
    assert run.next_sentence is not None
    held_out = run.next_sentence.held_out
    randomise(run.model, seed=1)
    run.model.train(training)
    (everything,) = held_out.rows.batches(held_out.pairs, 100, count=100)
    with torch.inference_mode():
        logits = run.model.classify(
            everything.input_ids, everything.attention_mask, everything.token_types
        ).double()
    log_probs = oracle.log_softmax(logits.numpy())
    labels = everything.labels.numpy()
    scores = evaluate_pairs(run.model, held_out.rows.batches(held_out.pairs, 7, count=100))
    np.testing.assert_allclose(scores.loss, -log_probs[np.arange(100), labels], atol=1e-5)
    np.testing.assert_array_equal(scores.correct, log_probs.argmax(1) == labels)
    assert held_out.evaluate(run.model, 100).accuracy == scores.correct.mean()
    assert run.model.training == training
