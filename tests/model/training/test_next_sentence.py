"""Pretraining with next-sentence prediction on tiny runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForPreTraining

from model.checkpoints.checkpoint import load_checkpoint
from model.data.corpus import SpecialTokens, pack_rows
from model.data.masking import MaskedBatch
from model.data.pair_template import PairTemplate
from model.data.pairs import PairBatch, PairBatches, PairRows, longest_sentence
from model.data.sentences import read_sentences
from model.data.short_texts import ShortTexts
from model.encoder.classifier import ClassifierConfig
from model.encoder.encoder import TiedEncoder
from model.training import loop
from model.training.config import TrainConfig
from model.training.evaluation import CONFIDENCE
from model.training.loop import Pretraining
from model.training.next_sentence import (
    HeldOutPairs,
    NextSentence,
    PairScores,
    evaluate_pairs,
    prepare_encoder,
    summed_losses,
)
from tests.model import oracle
from tests.model.samples import (
    ROW_TOKENS,
    assert_same_weights,
    in_float64,
    metrics_of,
    randomise,
    small_config,
)
from tests.model.training.test_resume import interrupt_at

WORDS = ("cat", "dog", "fox", "hill", "sea", "bird", "tree", "sun")
HEAD = ClassifierConfig.next_sentence()
# with other rates or batches, runs of the same length reach 0.5 to 1.0 by chance
LEARNABLE = {"steps": 300, "learning_rate": 5e-3, "batch_rows": 32, "evaluate_every_steps": 300}

MakeRun = Callable[..., Pretraining]


@pytest.fixture(autouse=True)
def fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Computation in float32, even on a CPU with bfloat16, for a tolerance of 1e-5."""
    monkeypatch.setattr(loop, "has_bfloat16", lambda _: False)


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """Tokenizer with BERT's template and fixed ids.

    The training of a tokenizer orders ids randomly, so that tiny runs learn more or less.
    """
    vocabulary = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS)
    ids = {token: number for number, token in enumerate(vocabulary)}
    fixed = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))  # noqa: S106 - not a password
    fixed.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fixed.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return fixed


def documents(sentences: int) -> list[str]:
    """Return a document per word, with sentences of one to four repetitions of the word."""
    generator = np.random.default_rng(sentences)
    return [
        "\n".join(" ".join([word] * int(n)) for n in generator.integers(1, 5, sentences))
        for word in WORDS
    ]


@pytest.fixture
def run_of(tokenizer: Tokenizer, tmp_path: Path) -> MakeRun:
    """Function that returns a tiny run on pairs with changed fields of its configuration."""
    template, special = (
        PairTemplate.from_tokenizer(tokenizer),
        SpecialTokens.from_tokenizer(tokenizer),
    )

    def rows_of(sentences: int) -> PairRows:
        text = read_sentences(documents(sentences), tokenizer, longest_sentence(ROW_TOKENS))
        return PairRows(text, template, special.pad, ROW_TOKENS)

    def make(
        *,
        name: str = "run",
        weights_seed: int = 0,
        **changes: Any,
    ) -> Pretraining:
        torch.manual_seed(weights_seed)
        fields: dict[str, Any] = {
            "steps": 40,
            "row_tokens": ROW_TOKENS,
            "batch_rows": 16,
            "warmup_steps": 5,
            "evaluate_every_steps": 20,
            "checkpoint_every_steps": 20,
            "next_sentence": True,
        }
        config = TrainConfig(**(fields | changes))
        held_out = rows_of(99)
        return Pretraining(
            model=TiedEncoder(small_config(vocab_size=tokenizer.get_vocab_size()), HEAD),
            rows=np.empty((0, ROW_TOKENS), np.int32),
            held_out=pack_rows(documents(99), tokenizer, special, ROW_TOKENS),
            next_sentence=NextSentence(
                PairBatches(rows_of(100), config.batch_rows, config.seed),
                HeldOutPairs(held_out, held_out.draw(1)),
            ),
            tokenizer_json=tokenizer.to_str().encode(),
            special=special,
            config=config,
            directory=tmp_path / name,
            device="cpu",
        )

    return make


def accuracy_after(run: Pretraining) -> float:
    """Train, and return the accuracy on held-out pairs."""
    run.run()
    assert run.next_sentence is not None
    return run.next_sentence.held_out.evaluate(run.model).accuracy


def test_neighbours_of_one_word_are_learnt(run_of: MakeRun, no_curve: None) -> None:
    run = run_of(**LEARNABLE)
    assert accuracy_after(run) > 0.9
    last = metrics_of(run.directory)[-1]
    assert last["held_out_next_sentence_accuracy"] > 0.9
    assert last["held_out_next_sentence_loss"] < 0.3
    assert last["held_out_top_1"] > 0.5


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
    """The sum of both means agrees to 1e-5 with float64 NumPy on unpadded pairs."""
    run = run_of(select_rate=0.3)
    randomise(run.model, seed=1)
    assert run.model.classifier is not None
    with torch.no_grad():
        run.model.classifier.output.weight *= 5  # labels far from equally likely
    token_loss, pair_loss = oracle_losses(run.model, run, 0)
    assert abs(pair_loss - math.log(2)) > 0.1
    assert run._train_step() == pytest.approx(token_loss + pair_loss, abs=1e-5)


def test_padding_changes_no_masked_logit(run_of: MakeRun) -> None:
    """Further padding with any ids changes losses by less than 1e-5."""
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
    """Select every odd token above 4, without randomness."""
    selected = (input_ids % 2 == 1) & (input_ids > 4)
    return MaskedBatch(input_ids, selected, input_ids[selected])


def test_accumulated_passes_make_the_gradient_of_one_batch(run_of: MakeRun) -> None:
    """Two passes of 8 pairs give the loss and the gradient of one pass of 16, to 1e-5."""
    together, apart = run_of(batch_rows=16), run_of(batch_rows=8, accumulate_passes=2)
    for run in (together, apart):
        run.masker = odd_tokens  # type: ignore[assignment]
    losses = [run._train_step() for run in (together, apart)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)
    for one, two in zip(together.model.parameters(), apart.model.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad, rtol=0, atol=1e-5)


@pytest.mark.parametrize("changes", [{}, {"accumulate_passes": 2}, {"average_decay": 0.9}])
def test_an_interrupted_run_resumes_bit_exact(
    run_of: MakeRun, no_curve: None, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    """The head, the log and all weights are those of an uninterrupted run of several epochs."""
    whole = run_of(name="whole", **changes)
    whole.run()
    killed = run_of(name="killed", **changes)
    interrupt_at(killed, 37, monkeypatch)
    resumed = run_of(name="killed", weights_seed=9, **changes)
    resumed.resume()
    assert resumed.step == 20
    resumed.run()
    assert_same_weights(resumed.model, whole.model)
    saved = [load_checkpoint(run.directory).model for run in (whole, resumed)]
    assert saved[0].classifier is not None
    assert saved[0].classifier.config == HEAD
    assert_same_weights(saved[1], saved[0])
    logs = [(run.directory / "metrics.jsonl").read_bytes() for run in (whole, resumed)]
    assert logs[0] == logs[1]


def test_short_texts_have_no_label(run_of: MakeRun, no_curve: None) -> None:
    """Half of the passes are pairs in their order, and the other half short texts."""
    run = run_of(short_share=0.5)
    text = np.tile(np.arange(5, 13, dtype=np.int32), (6, 1))
    run.short_texts = ShortTexts({8: text}, batch_tokens=48, seed=0)
    assert run.next_sentence is not None
    for number in range(6):
        pairs = run._pairs(number)
        if number % 2:
            assert pairs is None
            assert run._batch(number).shape == (6, 8)
        else:
            assert pairs is not None
            expected = run.next_sentence.training.batch(number // 2)
            assert torch.equal(pairs.input_ids, expected.input_ids)
    run.run()
    assert all(torch.isfinite(parameter).all() for parameter in run.model.parameters())


def scores_of(correct: NDArray[np.bool_], documents: NDArray[np.int64]) -> PairScores:
    """Return scores with a loss of 0.5 nats per pair."""
    return PairScores(np.full(len(correct), 0.5), correct, documents)


def test_intervals_are_as_wide_as_sampling_theory_says() -> None:
    """The pairs of a document vary together."""
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
    """Loss and accuracy are those of the classifier's logits, in any number of batches."""
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


def test_an_encoder_gets_what_it_lacks(tokenizer: Tokenizer) -> None:
    """A second preparation adds nothing."""
    template = PairTemplate.from_tokenizer(tokenizer)
    model, new = prepare_encoder(TiedEncoder(small_config(type_vocab_size=0)), template)
    assert new == ["embeddings of 2 token types", "next-sentence head"]
    assert prepare_encoder(model, template) == (model, [])
    assert prepare_encoder(TiedEncoder(small_config()), template)[1] == ["next-sentence head"]


@pytest.mark.parametrize(
    "head", [ClassifierConfig(labels=("good", "bad")), replace(HEAD, pooling="mean")]
)
def test_another_head_is_refused(tokenizer: Tokenizer, head: ClassifierConfig) -> None:
    model = TiedEncoder(small_config(), head)
    with pytest.raises(ValueError, match=r"labels is_next and not_next and the pooling 'first'"):
        prepare_encoder(model, PairTemplate.from_tokenizer(tokenizer))


def test_the_loss_is_that_of_transformers(run_of: MakeRun, tmp_path: Path) -> None:
    """A published checkpoint with both heads has no new parts, and its loss agrees to 1e-5."""
    run = run_of(select_rate=0.3)
    assert run.next_sentence is not None
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
    config = BertConfig(vocab_size=13, intermediate_size=40, max_position_embeddings=17, **sizes)
    published = BertForPreTraining(config).eval()
    randomise(published, seed=1)
    published.save_pretrained(tmp_path / "published")
    (tmp_path / "published" / "tokenizer.json").write_bytes(run.tokenizer_json)
    loaded = load_checkpoint(tmp_path / "published").model
    template = PairTemplate.from_tokenizer(Tokenizer.from_str(run.tokenizer_json.decode()))
    model, new = prepare_encoder(loaded, template)
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
