"""Tiny pretraining runs on pairs from documents that each repeat one word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.pretraining.config import TrainConfig
from fillmask_model.pretraining.loop import Pretraining
from fillmask_model.pretraining.objectives.next_sentence import HeldOutPairs, NextSentence
from fillmask_model.pretraining.pair_drawing import longest_sentence
from fillmask_model.pretraining.pair_template import PairTemplate
from fillmask_model.pretraining.pairs import PairBatches, PairRows
from fillmask_model.pretraining.rows import pack_rows
from fillmask_model.pretraining.sentences import read_sentences
from fillmask_model.tokenizers.special_tokens import SpecialTokens
from tests.model.samples import ROW_TOKENS, small_config

WORDS = ("cat", "dog", "fox", "hill", "sea", "bird", "tree", "sun")
HEAD = ClassifierConfig.next_sentence()

MakeRun = Callable[..., Pretraining]


def _word_tokenizer() -> Tokenizer:
    """Return a tokenizer with BERT's template and fixed ids.

    A trained tokenizer has ids in random order, which changes the accuracy of tiny runs.
    """
    vocabulary = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS)
    ids = {token: number for number, token in enumerate(vocabulary)}
    fixed = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))  # noqa: S106 - not a password
    fixed.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fixed.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return fixed


TOKENIZER = _word_tokenizer()
SPECIAL = SpecialTokens.from_tokenizer(TOKENIZER)
TEMPLATE = PairTemplate.from_tokenizer(TOKENIZER)


def pair_run(
    directory: Path, *, name: str = "run", weights_seed: int = 0, **changes: Any
) -> Pretraining:
    """Return a tiny run on pairs with changed fields of its configuration."""
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
    held_out = _rows_of(99)
    return Pretraining(
        model=TiedEncoder(small_config(vocab_size=TOKENIZER.get_vocab_size()), HEAD),
        rows=np.empty((0, ROW_TOKENS), np.int32),
        held_out=pack_rows(_documents(99), TOKENIZER, SPECIAL, ROW_TOKENS),
        next_sentence=NextSentence(
            PairBatches(_rows_of(100), config.batch_rows, config.seed),
            HeldOutPairs(held_out, held_out.draw(1)),
        ),
        tokenizer_json=TOKENIZER.to_str().encode(),
        special=SPECIAL,
        config=config,
        directory=directory / name,
        device="cpu",
    )


def _rows_of(sentences: int) -> PairRows:
    text = read_sentences(_documents(sentences), TOKENIZER, longest_sentence(ROW_TOKENS))
    return PairRows(text, TEMPLATE, SPECIAL.pad, ROW_TOKENS)


def _documents(sentences: int) -> list[str]:
    """Return one document per word, with sentences that contain the word one to four times."""
    generator = np.random.default_rng(sentences)
    return [
        "\n".join(" ".join([word] * int(n)) for n in generator.integers(1, 5, sentences))
        for word in WORDS
    ]
