"""Training and held-out text of a run as token ids.

Without held-out files, one packed row in 100 is held-out text. A run on pairs, whose segments come
from whole documents, holds out one document in 100 instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from fillmask_model.documents import read_documents
from fillmask_model.files import sha256_of
from fillmask_model.pretraining.config import TrainConfig
from fillmask_model.pretraining.pair_drawing import Sentences, longest_sentence, read_sentences
from fillmask_model.pretraining.row_files import read_key
from fillmask_model.pretraining.rows import TokenRows, pack_rows
from fillmask_model.pretraining.short_texts import LONGEST_TOKENS, short_rows
from fillmask_model.tokenizers.special_tokens import SpecialTokens

HELD_OUT_ONE_IN = 100
_SENTENCES = ("tokens", "starts", "documents")


@dataclass(frozen=True, slots=True)
class TextFiles:
    """Text files of a run, without held-out files if these come from the training text."""

    training: list[Path]
    held_out: list[Path]

    def documents(self) -> tuple[Iterator[str], Iterator[str]]:
        """Return the documents of a run on pairs to train on and to evaluate on."""
        texts = read_documents(self.training)
        if self.held_out:
            return texts, read_documents(self.held_out)
        training = (text for number, text in enumerate(texts) if number % HELD_OUT_ONE_IN)
        return training, islice(read_documents(self.training), 0, None, HELD_OUT_ONE_IN)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingText:
    """Token ids of a run's text.

    Attributes:
        packed: (rows, row_tokens) rows for training. A run on pairs has none.
        held_out: (rows, row_tokens) rows for evaluation.
        short: (N, T) short texts by T, possibly none.
        sentences: training and held-out sentences of a run on pairs.
    """

    packed: TokenRows
    held_out: TokenRows
    short: Mapping[int, TokenRows]
    sentences: tuple[Sentences, ...]

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, TokenRows]) -> TrainingText:
        short = (part for name, part in sorted(arrays.items()) if name.startswith("short_"))
        sentences = (
            Sentences(
                arrays[f"{prefix}_tokens"],
                # on disk, they may have two bytes
                *(arrays[f"{prefix}_{name}"].astype(np.int64) for name in ("starts", "documents")),
            )
            for prefix in ("training", "held_out")
            if f"{prefix}_tokens" in arrays
        )
        return cls(
            arrays["packed"],
            arrays["held_out"],
            {rows.shape[1]: rows for rows in short},
            tuple(sentences),
        )


def tokenize(files: TextFiles, tokenizer: Tokenizer, config: TrainConfig) -> dict[str, TokenRows]:
    """Tokenize the text of a run, as arrays by name."""
    special, row_tokens = SpecialTokens.from_tokenizer(tokenizer), config.row_tokens

    def pack(documents: Iterable[str]) -> TokenRows:
        return pack_rows(documents, tokenizer, special, row_tokens)

    arrays: dict[str, TokenRows] = {}
    short_documents: Iterable[str] = read_documents(files.training)
    if config.next_sentence:
        for prefix, documents in zip(("training", "held_out"), files.documents(), strict=True):
            found = read_sentences(documents, tokenizer, longest_sentence(row_tokens))
            arrays |= {f"{prefix}_{name}": getattr(found, name) for name in _SENTENCES}
        short_documents, held_out_documents = files.documents()
        packed: TokenRows = np.empty((0, row_tokens), np.int32)
        held_out = pack(held_out_documents)
    else:
        packed = pack(read_documents(files.training))
        if files.held_out:
            held_out = pack(read_documents(files.held_out))
        else:
            set_aside = np.arange(len(packed)) % HELD_OUT_ONE_IN == 0
            packed, held_out = packed[~set_aside], packed[set_aside]
    if config.short_share:
        longest = min(LONGEST_TOKENS, row_tokens)
        short = short_rows(short_documents, tokenizer, special, config.seed, longest)
        arrays |= {f"short_{tokens:04}": rows for tokens, rows in short.items()}
    return arrays | {"packed": packed, "held_out": held_out}


def text_key(files: TextFiles, tokenizer: Tokenizer, config: TrainConfig) -> dict[str, Any]:
    """Return all that determines the arrays of `tokenize`, as a JSON object."""
    key = {
        "texts": sha256_of(files.training),
        "held_out": sha256_of(files.held_out),
        "tokenizer": hashlib.sha256(tokenizer.to_str().encode()).hexdigest(),
        "row_tokens": config.row_tokens,
        "short_texts_seed": config.seed if config.short_share else None,
    }
    if config.next_sentence:
        key["longest_sentence_tokens"] = longest_sentence(config.row_tokens)
    return key


def reject_other_texts(directory: Path, key: Mapping[str, Any]) -> None:
    """Raise a ValueError if the texts of a resumed run are not those of the run."""
    before = read_key(directory)
    for name, given in (("texts", "the texts"), ("held_out", "the files of --held-out")):
        if before is not None and before.get(name) != key[name]:
            raise ValueError(
                f"{given} differ from those of the run in {directory.parent}; give the same, or "
                "start a new run with --init and another --output"
            )
