"""Training and held-out text of a run as token ids.

Without held-out files, one packed row in 100 is held-out text. A run on pairs, whose segments come
from whole documents, holds out one document in 100 instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from fillmask_model.bootstrap import EVALUATION_SEED
from fillmask_model.checkpoints.errors import prefix_errors
from fillmask_model.documents import read_documents
from fillmask_model.files import sha256_of
from fillmask_model.pretraining.config import TrainConfig
from fillmask_model.pretraining.pairs import Pairs, make_pairs
from fillmask_model.pretraining.row_files import read_key
from fillmask_model.pretraining.rows import TokenRows, pack_rows
from fillmask_model.pretraining.short_texts import LONGEST_TOKENS, short_rows
from fillmask_model.tokenizers.special_tokens import SpecialTokens

HELD_OUT_ONE_IN = 100


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
        pairs, held_out_pairs: None for a run without next-sentence prediction.
    """

    packed: TokenRows
    held_out: TokenRows
    short: Mapping[int, TokenRows] = field(default_factory=dict)
    pairs: Pairs | None = None
    held_out_pairs: Pairs | None = None

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, TokenRows]) -> TrainingText:
        short = (part for name, part in sorted(arrays.items()) if name.startswith("short_"))
        pairs = {
            name: Pairs(arrays[name], arrays[f"{name}_numbers"])
            for name in ("pairs", "held_out_pairs")
            if name in arrays
        }
        by_length = {rows.shape[1]: rows for rows in short}
        return cls(arrays["packed"], arrays["held_out"], by_length, **pairs)

    def summary(self) -> str:
        if self.pairs is None or self.held_out_pairs is None:
            said = f"{self.packed.size:,} training tokens, {self.held_out.size:,} held out"
        else:
            counts = len(self.pairs.ids), len(self.held_out_pairs.ids)
            said = f"{counts[0]:,} training pairs, {counts[1]:,} held out"
        short = sum(rows.size for rows in self.short.values())
        return f"{said}, {short:,} tokens in short texts" if short else said


def tokenize(files: TextFiles, tokenizer: Tokenizer, config: TrainConfig) -> dict[str, TokenRows]:
    """Tokenize the text of a run, as arrays by name."""
    special, row_tokens = SpecialTokens.from_tokenizer(tokenizer), config.row_tokens

    def pack(documents: Iterable[str]) -> TokenRows:
        return pack_rows(documents, tokenizer, special, row_tokens)

    arrays: dict[str, TokenRows] = {}
    short_documents: Iterable[str] = read_documents(files.training)
    if config.next_sentence:
        training, held_out_documents = files.documents()
        pairs = make_pairs(training, tokenizer, row_tokens, config.seed)
        with prefix_errors("held-out text"):
            # one seed, so that all evaluations of a text have the same pairs
            held_out_pairs = make_pairs(held_out_documents, tokenizer, row_tokens, EVALUATION_SEED)
        arrays = {"pairs": pairs.ids, "pairs_numbers": pairs.numbers}
        arrays |= {
            "held_out_pairs": held_out_pairs.ids,
            "held_out_pairs_numbers": held_out_pairs.numbers,
        }
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
        key["pairs_seed"] = config.seed
    return key


def reject_other_texts(rows: Path, key: Mapping[str, Any]) -> None:
    """Raise a ValueError if the texts of a resumed run are not those of the run."""
    before = read_key(rows)
    for name, given in (("texts", "the texts"), ("held_out", "the files of --held-out")):
        if before is not None and before.get(name) != key[name]:
            raise ValueError(
                f"{given} differ from those of the run in {rows.parent}; give the same, or "
                "start a new run with --init and another --output"
            )
