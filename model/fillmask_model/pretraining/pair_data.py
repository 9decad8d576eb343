"""Training and held-out pairs of a run from text files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from fillmask_model.bootstrap import EVALUATION_SEED
from fillmask_model.documents import read_documents
from fillmask_model.files import sha256_of
from fillmask_model.pretraining.config import TrainConfig
from fillmask_model.pretraining.objectives.next_sentence import HeldOutPairs, NextSentence
from fillmask_model.pretraining.pair_drawing import longest_sentence
from fillmask_model.pretraining.pair_template import PairTemplate
from fillmask_model.pretraining.pairs import PairBatches, PairRows
from fillmask_model.pretraining.row_files import TrainingRows, load_or_build_arrays
from fillmask_model.pretraining.rows import TokenRows, pack_rows
from fillmask_model.pretraining.sentences import Sentences, read_sentences
from fillmask_model.pretraining.short_texts import LONGEST_TOKENS, short_rows
from fillmask_model.tokenizers.special_tokens import SpecialTokens

# without held-out files, one document in 100 is held-out text
HELD_OUT_ONE_IN = 100
_TRAINING, _HELD_OUT = "training_", "held_out_"  # prefixes of the arrays' names


def training_documents(files: Iterable[Path], held_out_files: list[Path]) -> Iterator[str]:
    """Yield the documents to train on."""
    documents = read_documents(files)
    if held_out_files:
        return documents
    return (text for number, text in enumerate(documents) if number % HELD_OUT_ONE_IN)


def held_out_documents(files: Iterable[Path], held_out_files: list[Path]) -> Iterator[str]:
    """Yield the documents to evaluate on."""
    if held_out_files:
        return read_documents(held_out_files)
    return islice(read_documents(files), 0, None, HELD_OUT_ONE_IN)


def rows_beside_pairs(
    files: list[Path], held_out_files: list[Path], tokenizer: Tokenizer, config: TrainConfig
) -> TrainingRows:
    """Create the held-out rows and the short texts of a run that trains on pairs."""
    special, row_tokens = SpecialTokens.from_tokenizer(tokenizer), config.row_tokens
    held_out = held_out_documents(files, held_out_files)
    short: dict[int, NDArray[np.int32]] = {}
    if config.short_share:
        texts = training_documents(files, held_out_files)
        longest = min(LONGEST_TOKENS, row_tokens)
        short = short_rows(texts, tokenizer, special, config.seed, longest)
    return TrainingRows(
        packed=np.empty((0, row_tokens), np.int32),
        held_out=pack_rows(held_out, tokenizer, special, row_tokens),
        short=short,
    )


def load_pairs(
    directory: Path,
    files: list[Path],
    held_out_files: list[Path],
    tokenizer: Tokenizer,
    config: TrainConfig,
) -> NextSentence:
    """Draw the pairs of a run.

    The sentences come from files in `directory`. If these files are missing or belong to other
    texts or another tokenizer, the function creates new files.

    Raises:
        ValueError: the training text has too few pairs for a batch, or the held-out text has no
            pairs.
    """
    longest = longest_sentence(config.row_tokens)

    def tokenize() -> dict[str, TokenRows]:
        arrays: dict[str, TokenRows] = {}
        for prefix, select in ((_TRAINING, training_documents), (_HELD_OUT, held_out_documents)):
            found = read_sentences(select(files, held_out_files), tokenizer, longest)
            arrays |= {prefix + name: part for name, part in found.to_arrays().items()}
        return arrays

    key = {
        "texts": sha256_of(files),
        "held_out": sha256_of(held_out_files),
        "tokenizer": hashlib.sha256(tokenizer.to_str().encode()).hexdigest(),
        "longest_sentence_tokens": longest,
    }
    arrays = load_or_build_arrays(directory, key, tokenize)
    training, held_out = (
        Sentences.from_arrays(
            {name.removeprefix(p): part for name, part in arrays.items() if name.startswith(p)}
        )
        for p in (_TRAINING, _HELD_OUT)
    )
    return NextSentence(
        PairBatches(
            _pair_rows(training, tokenizer, config.row_tokens), config.batch_rows, config.seed
        ),
        _held_out_pairs(held_out, tokenizer, config.row_tokens),
    )


def read_held_out_pairs(
    documents: Iterable[str], tokenizer: Tokenizer, row_tokens: int
) -> HeldOutPairs:
    """Draw the held-out pairs of documents.

    Raises:
        ValueError: the text has fewer than two documents, or no document with two sentences.
    """
    sentences = read_sentences(documents, tokenizer, longest_sentence(row_tokens))
    return _held_out_pairs(sentences, tokenizer, row_tokens)


def _held_out_pairs(sentences: Sentences, tokenizer: Tokenizer, row_tokens: int) -> HeldOutPairs:
    rows = _pair_rows(sentences, tokenizer, row_tokens)
    try:
        # fixed, so that all evaluations of a text have the same pairs
        return HeldOutPairs(rows, rows.draw(EVALUATION_SEED))
    except ValueError as error:
        raise ValueError(f"held-out text: {error}") from None


def _pair_rows(sentences: Sentences, tokenizer: Tokenizer, row_tokens: int) -> PairRows:
    template = PairTemplate.from_tokenizer(tokenizer)
    return PairRows(sentences, template, SpecialTokens.from_tokenizer(tokenizer).pad, row_tokens)
