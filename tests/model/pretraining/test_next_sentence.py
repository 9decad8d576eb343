"""Pretraining with next-sentence prediction, compared with transformers."""

from __future__ import annotations

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
from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.pretraining.config import TrainConfig
from fillmask_model.pretraining.loop import Pretraining
from fillmask_model.pretraining.next_sentence import evaluate_pairs, prepare_encoder
from fillmask_model.pretraining.pairs import Pairs, make_pairs
from fillmask_model.pretraining.rows import pack_rows
from fillmask_model.pretraining.texts import TextFiles, TrainingText, text_key, tokenize
from fillmask_model.tokenizers.special_tokens import SpecialTokens
from tests.model.command_line import pretrain
from tests.model.samples import (
    ROW_TOKENS,
    assert_same_weights,
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


def documents_of(sentences: int) -> list[str]:
    """Return one document per word, with sentences that contain the word one to four times."""
    generator = np.random.default_rng(sentences)
    return [
        "\n".join(" ".join([word] * int(n)) for n in generator.integers(1, 5, sentences))
        for word in WORDS
    ]


def pairs_of(sentences: int, seed: int) -> Pairs:
    return make_pairs(documents_of(sentences), TOKENIZER, ROW_TOKENS, seed)


HELD_OUT_PAIRS = pairs_of(99, 1)


@pytest.fixture
def run_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeRun:
    """Function that makes a tiny run on pairs in float32, for a tolerance of 1e-5 nats."""
    monkeypatch.setattr(optimization, "has_bfloat16", lambda _: False)

    def make(
        model: TiedEncoder | None = None, pairs: Pairs | None = None, **changes: Any
    ) -> Pretraining:
        torch.manual_seed(0)
        fields: dict[str, Any] = {
            "steps": 40,
            "row_tokens": ROW_TOKENS,
            "batch_rows": 16,
            "warmup_steps": 5,
            "evaluate_every_steps": 20,
            "next_sentence": True,
        }
        short = {8: np.tile(np.arange(5, 13, dtype=np.int32), (6, 1))}
        return Pretraining(
            model=model or TiedEncoder(small_config(vocab_size=13), HEAD),
            text=TrainingText(
                np.empty((0, ROW_TOKENS), np.int32),
                pack_rows(documents_of(99), TOKENIZER, SPECIAL, ROW_TOKENS),
                short,
                pairs or pairs_of(100, 0),
                HELD_OUT_PAIRS,
            ),
            tokenizer_json=TOKENIZER.to_str().encode(),
            special=SPECIAL,
            config=TrainConfig(**(fields | changes)),
            directory=tmp_path / "run",
            device="cpu",
        )

    return make


@pytest.mark.slow  # 300 steps
@pytest.mark.parametrize("shuffled", [False, True])
def test_neighbours_of_one_word_are_learnt(
    run_of: MakeRun,
    no_curve: None,
    shuffled: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    # With other rates or batches, runs of the same length reach 0.5 to 1.0 by chance.
    pairs = pairs_of(400, 0)
    if shuffled:
        pairs.numbers[:, 2] = np.random.default_rng(0).integers(2, size=len(pairs.numbers))
    run = run_of(
        pairs=pairs, steps=300, learning_rate=5e-3, batch_rows=32, evaluate_every_steps=300
    )
    run.run()
    accuracy, _ = evaluate_pairs(run.model, HELD_OUT_PAIRS)
    assert 0.4 < accuracy < 0.6 if shuffled else accuracy > 0.9
    last = metrics_of(run.directory)[-1]
    assert last["held_out_top_1"] > 0.5
    assert (last["held_out_next_sentence_accuracy"] > 0.9) == (not shuffled)
    assert (last["held_out_next_sentence_loss"] < 0.3) == (not shuffled)


def test_the_loss_is_that_of_transformers(run_of: MakeRun, tmp_path: Path) -> None:
    # The loss of a published checkpoint with both heads agrees with transformers to 1e-5.
    sizes: dict[str, Any] = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
    config = BertConfig(vocab_size=13, intermediate_size=40, max_position_embeddings=17, **sizes)
    published = BertForPreTraining(config)
    published.train(mode=False)
    randomise(published, seed=1)
    with torch.no_grad():
        published.cls.seq_relationship.weight *= 5  # labels far from equally likely
    published.save_pretrained(tmp_path / "published")
    model = prepare_encoder(load_checkpoint(tmp_path / "published").model, 2)
    run = run_of(model, select_rate=0.3)
    pairs = run.batches.batch(0)[1]
    assert pairs is not None
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
    assert run._train_step() == pytest.approx(float(expected), abs=1e-5)
    with pytest.raises(ValueError, match=r"number of pairs from the text must be .*, 9999 \(got"):
        run_of(batch_rows=9999)


def test_evaluation_reads_unmasked_pairs_in_any_number_of_batches(run_of: MakeRun) -> None:
    run = run_of()
    randomise(run.model, seed=1)
    everything = HELD_OUT_PAIRS.batch(slice(100))
    with torch.inference_mode():
        logits = run.model.classify(
            everything.input_ids, everything.attention_mask, everything.token_types
        )
    log_probs = logits.double().log_softmax(-1)
    run.model.train()
    accuracy, loss = evaluate_pairs(run.model, HELD_OUT_PAIRS, 100, batch_rows=7)
    assert accuracy == float((log_probs.argmax(-1) == everything.labels).double().mean())
    expected = torch.nn.functional.nll_loss(log_probs, everything.labels)
    assert loss == pytest.approx(float(expected), abs=1e-5)
    assert run.model.training


def test_an_encoder_gets_what_it_lacks_or_is_refused() -> None:
    # A second preparation adds nothing.
    model = prepare_encoder(TiedEncoder(small_config(type_vocab_size=0)), 2)
    assert model.config.type_vocab_size == 2
    assert model.classifier is not None
    assert model.classifier.config == HEAD
    assert_same_weights(prepare_encoder(model, 2), model)
    for head in (ClassifierConfig(labels=("good", "bad")), replace(HEAD, pooling="mean")):
        message = "the labels is_next and not_next and the pooling 'first'"
        with pytest.raises(ValueError, match=message):
            prepare_encoder(TiedEncoder(small_config(), head), 2)


def test_one_document_in_a_hundred_is_set_aside(tmp_path: Path) -> None:
    # Neither the training pairs nor the short texts come from held-out documents.
    documents = ["cat dog fox hill\ncat cat"] * 301
    documents[::100] = ["sea sea sea sea sea\nsea sea"] * 4
    (tmp_path / "text.txt").write_text("\n\n".join(documents))
    config = TrainConfig(next_sentence=True, short_share=0.5, row_tokens=ROW_TOKENS)
    files = TextFiles([tmp_path / "text.txt"], [])
    text = TrainingText.from_arrays(tokenize(files, TOKENIZER, config))
    sea = TOKENIZER.token_to_id("sea")
    assert text.pairs is not None
    assert text.held_out_pairs is not None
    assert (len(text.pairs.ids), len(text.held_out_pairs.ids)) == (297, 4)
    assert (text.held_out_pairs.ids == sea).any(axis=1).all()
    assert sea in text.held_out
    assert not any(sea in rows for rows in (text.pairs.ids, *text.short.values()))
    # what is on the disk is of this text, this seed and this form
    plain = replace(config, short_share=0.0)
    keys = [text_key(files, TOKENIZER, replace(plain, seed=seed)) for seed in (0, 0, 1)]
    assert keys[0] == keys[1] != keys[2]
    assert keys[0] != text_key(files, TOKENIZER, replace(plain, next_sentence=False))


def pretrain_on_pairs(*arguments: str) -> int:
    return pretrain("--next-sentence", "--held-out=held-out.txt", *arguments)


@pytest.mark.usefixtures("no_curve")
def test_the_command_adds_a_head_and_continues_bit_exact(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A run without pairs keeps the head.
    (workplace / "held-out.txt").write_text(repetitive_text(30))
    arguments = ("--tokenizer=tokenizer.json", "--short-share=0.5", "--accumulate-passes=2")
    assert pretrain_on_pairs("--output=run", *arguments) == 0
    said = capsys.readouterr()
    assert re.search(r"\d+ training pairs, \d+ held out, [\d,]+ tokens in short texts", said.out)
    assert re.search(r"held-out loss .* next sentence \d+\.\d %", said.out + said.err)
    assert pretrain_on_pairs("--output=halves", *arguments, "--until-step=2") == 0
    assert pretrain_on_pairs("--output=halves", *arguments, "--resume") == 0
    weights = [Path(run, "model.safetensors").read_bytes() for run in ("run", "halves")]
    assert weights[0] == weights[1]
    assert pretrain("--init=run", "--output=more") == 0
    heads = [load_file(f"{run}/model.safetensors") for run in ("run", "more")]
    names = [name for name in heads[0] if "classifier" in name]
    assert len(names) == 4
    assert all(torch.equal(heads[0][name], heads[1][name]) for name in names)
    Path("held-out.txt").write_text(repetitive_text(1))
    assert pretrain_on_pairs("--output=other") == 2
    (*_, line) = capsys.readouterr().err.splitlines()
    assert "held-out text: the text must have at least two documents" in line
