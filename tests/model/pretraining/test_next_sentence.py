"""Pretraining with next-sentence prediction, compared with float64 NumPy and transformers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForPreTraining

from fillmask_model import optimization
from fillmask_model.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from fillmask_model.commands import main
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.pretraining import texts
from fillmask_model.pretraining.config import TrainConfig
from fillmask_model.pretraining.loop import Pretraining
from fillmask_model.pretraining.next_sentence import (
    evaluate_pairs,
    pair_metrics,
    prepare_encoder,
    summed_losses,
)
from fillmask_model.pretraining.pair_drawing import longest_sentence, read_sentences
from fillmask_model.pretraining.pairs import PairBatch, PairRows, PairTemplate
from fillmask_model.pretraining.rows import pack_rows
from fillmask_model.pretraining.short_texts import ShortTexts
from fillmask_model.pretraining.texts import TextFiles, TrainingText, tokenize
from fillmask_model.tokenizers.special_tokens import SpecialTokens
from tests.model import oracle
from tests.model.command_line import pretrain, save_small
from tests.model.samples import (
    ROW_TOKENS,
    in_float64,
    metrics_of,
    randomise,
    repetitive_text,
    small_config,
)

WORDS = ("cat", "dog", "fox", "hill", "sea", "bird", "tree", "sun")
HEAD = ClassifierConfig.next_sentence()
MakeRun = Callable[..., Pretraining]


def _word_tokenizer() -> Tokenizer:
    """Return a tokenizer with BERT's template and fixed ids, which decide a tiny run's accuracy."""
    vocabulary = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS)
    ids = {token: number for number, token in enumerate(vocabulary)}
    fixed = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))  # noqa: S106 - not a password
    fixed.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fixed.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return fixed


TOKENIZER = _word_tokenizer()
SPECIAL = SpecialTokens.from_tokenizer(TOKENIZER)
TEMPLATE = PairTemplate.from_tokenizer(TOKENIZER)


def documents_of(sentences: int) -> list[str]:
    """Return one document per word, with sentences that contain the word one to four times."""
    generator = np.random.default_rng(sentences)
    return [
        "\n".join(" ".join([word] * int(n)) for n in generator.integers(1, 5, sentences))
        for word in WORDS
    ]


def rows_of(sentences: int, seed: int = 0) -> PairRows:
    text = read_sentences(documents_of(sentences), TOKENIZER, longest_sentence(ROW_TOKENS))
    return PairRows(text, TEMPLATE, SPECIAL.pad, ROW_TOKENS, seed)


@pytest.fixture
def run_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeRun:
    """Function that makes a tiny run on pairs in float32, for a tolerance of 1e-5 nats."""
    monkeypatch.setattr(optimization, "has_bfloat16", lambda _: False)

    def make(**changes: Any) -> Pretraining:
        torch.manual_seed(0)
        fields: dict[str, Any] = {
            "steps": 40,
            "row_tokens": ROW_TOKENS,
            "batch_rows": 16,
            "warmup_steps": 5,
            "evaluate_every_steps": 20,
            "next_sentence": True,
        }
        config = TrainConfig(**(fields | changes))
        return Pretraining(
            model=TiedEncoder(small_config(vocab_size=TOKENIZER.get_vocab_size()), HEAD),
            rows=np.empty((0, ROW_TOKENS), np.int32),
            held_out=pack_rows(documents_of(99), TOKENIZER, SPECIAL, ROW_TOKENS),
            pairs=rows_of(100, config.seed),
            held_out_pairs=rows_of(99, 1),
            tokenizer_json=TOKENIZER.to_str().encode(),
            special=SPECIAL,
            config=config,
            directory=tmp_path / "run",
            device="cpu",
        )

    return make


def first_pairs(run: Pretraining) -> PairBatch:
    assert run.batches.pairs is not None
    return run.batches.pairs.batch(0, run.config.batch_rows)


def held_out_of(run: Pretraining) -> PairRows:
    assert run.held_out_pairs is not None
    return run.held_out_pairs


@pytest.mark.slow  # 300 steps
@pytest.mark.parametrize("shuffled", [False, True])
def test_neighbours_of_one_word_are_learnt(
    run_of: MakeRun,
    no_curve: None,
    monkeypatch: pytest.MonkeyPatch,
    shuffled: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    # With other rates or batches, runs of the same length reach 0.5 to 1.0 by chance.
    run = run_of(steps=300, learning_rate=5e-3, batch_rows=32, evaluate_every_steps=300)
    assert run.batches.pairs is not None
    if shuffled:
        drawn, generator = run.batches.pairs.batch, torch.Generator().manual_seed(0)

        def batch(number: int, batch_rows: int) -> PairBatch:
            pairs = drawn(number, batch_rows)
            return replace(pairs, labels=torch.randint(2, pairs.labels.shape, generator=generator))

        monkeypatch.setattr(run.batches.pairs, "batch", batch)
    run.run()
    accuracy = evaluate_pairs(run.model, held_out_of(run)).accuracy
    assert 0.4 < accuracy < 0.6 if shuffled else accuracy > 0.9
    last = metrics_of(run.directory)[-1]
    assert last["held_out_top_1"] > 0.5
    assert (last["held_out_next_sentence_accuracy"] > 0.9) == (not shuffled)
    assert (last["held_out_next_sentence_loss"] < 0.3) == (not shuffled)


def test_the_loss_is_the_oracles(run_of: MakeRun) -> None:
    # The loss agrees to 1e-5 with the sum of both means in float64 NumPy on unpadded pairs.
    run = run_of(select_rate=0.3)
    randomise(run.model, seed=1)
    assert run.model.classifier is not None
    with torch.no_grad():
        run.model.classifier.output.weight *= 5  # labels far from equally likely
    weights, config, pairs = in_float64(run.model.state_dict()), run.model.config, first_pairs(run)
    masked = run.masker(pairs.input_ids, torch.Generator().manual_seed(0))
    token_losses, pair_losses = [], []
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
    pair_loss = math.fsum(pair_losses) / len(pair_losses)
    assert abs(pair_loss - math.log(2)) > 0.1
    expected = math.fsum(token_losses) / len(token_losses) + pair_loss
    assert run._train_step() == pytest.approx(expected, abs=1e-5)


def test_the_loss_is_that_of_transformers(run_of: MakeRun, tmp_path: Path) -> None:
    # The loss of a published checkpoint with both heads agrees with transformers to 1e-5.
    run = run_of(select_rate=0.3)
    sizes: dict[str, Any] = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
    config = BertConfig(vocab_size=13, intermediate_size=40, max_position_embeddings=17, **sizes)
    published = BertForPreTraining(config)
    published.train(mode=False)
    randomise(published, seed=1)
    published.save_pretrained(tmp_path / "published")
    (tmp_path / "published" / "tokenizer.json").write_bytes(run.tokenizer_json)
    model, new = prepare_encoder(load_checkpoint(tmp_path / "published").model, TEMPLATE)
    assert new == []
    pairs = first_pairs(run)
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


def test_intervals_are_as_wide_as_sampling_theory_says() -> None:
    # Copies of a pair in its document do not make the interval narrower.
    correct = np.random.default_rng(0).random(2_000) < 0.7
    for together in (1, 10):
        copies, documents = correct.repeat(together), np.arange(2_000).repeat(together)
        metrics = pair_metrics(np.full(len(copies), 0.5), copies, documents)
        assert metrics.accuracy == pytest.approx(correct.mean())
        assert (metrics.loss, metrics.pairs) == (0.5, len(copies))
        low, high = metrics.accuracy_interval
        assert (high - low) / 2 == pytest.approx(1.96 * math.sqrt(0.7 * 0.3 / 2_000), rel=0.1)


def test_evaluation_reads_unmasked_pairs_in_any_number_of_batches(run_of: MakeRun) -> None:
    run = run_of()
    randomise(run.model, seed=1)
    held_out = held_out_of(run)
    everything = held_out.inputs(held_out.pairs[:100])
    with torch.inference_mode():
        logits = run.model.classify(
            everything.input_ids, everything.attention_mask, everything.token_types
        )
    log_probs = logits.double().log_softmax(-1)
    run.model.train()
    metrics = evaluate_pairs(run.model, held_out, 100, batch_rows=7)
    assert metrics.pairs == 100
    assert metrics.accuracy == float((log_probs.argmax(-1) == everything.labels).double().mean())
    loss = torch.nn.functional.nll_loss(log_probs, everything.labels)
    assert metrics.loss == pytest.approx(float(loss), abs=1e-5)
    assert run.model.training


def test_short_texts_have_no_label(run_of: MakeRun) -> None:
    # Pairs and short texts alternate, and the pairs keep their order.
    run = run_of(short_share=0.5)
    text = np.tile(np.arange(5, 13, dtype=np.int32), (6, 1))
    run.batches.short_texts = ShortTexts({8: text}, batch_tokens=48, seed=0)
    assert run.batches.pairs is not None
    for number in range(6):
        pairs = run.batches.pair_batch(number)
        if number % 2:
            assert pairs is None
            assert run.batches.tokens(number).shape == (6, 8)
        else:
            assert pairs is not None
            expected = run.batches.pairs.batch(number // 2, run.config.batch_rows)
            assert torch.equal(pairs.input_ids, expected.input_ids)
        run.step = number
        assert math.isfinite(run._train_step())


def test_an_encoder_gets_what_it_lacks() -> None:
    # A second preparation adds nothing.
    model, new = prepare_encoder(TiedEncoder(small_config(type_vocab_size=0)), TEMPLATE)
    assert new == ["embeddings of 2 token types", "next-sentence head"]
    assert prepare_encoder(model, TEMPLATE) == (model, [])
    assert prepare_encoder(TiedEncoder(small_config()), TEMPLATE)[1] == ["next-sentence head"]
    for head in (ClassifierConfig(labels=("good", "bad")), replace(HEAD, pooling="mean")):
        message = "the labels is_next and not_next and the pooling 'first'"
        with pytest.raises(ValueError, match=message):
            prepare_encoder(TiedEncoder(small_config(), head), TEMPLATE)


def test_one_document_in_a_hundred_is_set_aside(tmp_path: Path) -> None:
    # Neither the training pairs nor the short texts come from held-out documents.
    documents = ["cat dog fox hill\ncat cat"] * 301
    documents[::100] = ["sea sea sea sea sea\nsea sea"] * 4
    (tmp_path / "text.txt").write_text("\n\n".join(documents))
    config = TrainConfig(next_sentence=True, short_share=0.5, row_tokens=ROW_TOKENS)
    arrays = tokenize(TextFiles([tmp_path / "text.txt"], []), TOKENIZER, config)
    text = TrainingText.from_arrays({name: part.astype(np.uint16) for name, part in arrays.items()})
    sea = TOKENIZER.token_to_id("sea")
    training, held_out = text.sentences
    assert (len(training.documents), len(held_out.documents)) == (298, 5)
    # on disk, they had two bytes, which are too few for sums
    assert training.starts.dtype == training.documents.dtype == np.int64
    assert set(held_out.tokens.tolist()) == {sea}
    assert sea in text.held_out
    assert not any(sea in rows for rows in (training.tokens, *text.short.values()))


EVALUATE = ["evaluate", "run", "--held-out=text.txt", "--row-tokens=16", "--next-sentence"]


def pretrain_on_pairs(*arguments: str) -> int:
    return pretrain("--next-sentence", "--held-out=held-out.txt", *arguments)


@pytest.mark.usefixtures("no_curve")
def test_the_command_adds_a_head_and_continues_bit_exact(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A resumed run does not tokenize the text again. A run without pairs keeps the head.
    (workplace / "held-out.txt").write_text(repetitive_text(30))
    arguments = ("--tokenizer=tokenizer.json", "--short-share=0.5", "--accumulate-passes=2")
    assert pretrain_on_pairs("--output=run", *arguments) == 0
    said = capsys.readouterr()
    assert "new parts: next-sentence head" in said.out
    assert re.search(r"\d+ training pairs in the first epoch, \d+ held out", said.out)
    assert re.search(r"held-out loss .* next sentence \d+\.\d % \(", said.out + said.err)
    assert pretrain_on_pairs("--output=halves", *arguments, "--until-step=2") == 0
    with monkeypatch.context() as patch:
        patch.setattr(texts, "read_sentences", None)
        assert pretrain_on_pairs("--output=halves", *arguments, "--resume") == 0
    weights = [Path(run, "model.safetensors").read_bytes() for run in ("run", "halves")]
    assert weights[0] == weights[1]
    assert pretrain("--init=run", "--output=more") == 0
    heads = [load_file(f"{run}/model.safetensors") for run in ("run", "more")]
    names = [name for name in heads[0] if "classifier" in name]
    assert len(names) == 4
    assert all(torch.equal(heads[0][name], heads[1][name]) for name in names)
    capsys.readouterr()
    assert main(EVALUATE) == 0
    figures = json.loads(capsys.readouterr().out)["next_sentence"]
    low, high = figures["accuracy_interval"]
    assert 0 <= low <= figures["accuracy"] <= high <= 1
    assert figures["pairs"] > 50


def test_mistakes_are_one_line(
    workplace: Path, tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    def error_of(status: int) -> str:
        assert status == 2
        (line,) = capsys.readouterr().err.splitlines()
        return str(line)

    size, tokenizer_json = tokenizer.get_vocab_size(), tokenizer.to_str().encode()
    save_small("run", tokenizer_json, vocab_size=size)
    assert "labels is_next and not_next (got no head); train one" in error_of(main(EVALUATE))
    config = small_config(vocab_size=size, max_positions=16)
    other = TiedEncoder(config, ClassifierConfig(labels=("good", "bad")))
    save_checkpoint(Path("run"), other, tokenizer_json)
    assert "labels is_next and not_next (got good, bad); train" in error_of(main(EVALUATE))
    Path("held-out.txt").write_text(repetitive_text(1))
    assert "held-out text: the text must have at least two documents" in error_of(
        pretrain_on_pairs("--output=other")
    )
