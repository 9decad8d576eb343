"""Tiny pairs of queries and documents that share no word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models

from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.fine_tuning.tables import Dataset, Example
from fillmask_model.sparse.config import SparseConfig
from fillmask_model.sparse.pairs import PairFile, PairTokens, tokenize_pairs
from fillmask_model.sparse.training import SparseTraining
from fillmask_model.tokenizers.word_pieces import train_word_pieces
from tests.model.samples import random_encoder, small_config

# each word of a query means one word of a document
MEANINGS = {
    "cat": "katze",
    "dog": "hund",
    "fox": "fuchs",
    "bird": "vogel",
    "hen": "henne",
    "red": "rot",
    "green": "gruen",
    "blue": "blau",
    "pink": "rosa",
    "grey": "grau",
    "bread": "brot",
    "milk": "milch",
    "rice": "reis",
    "soup": "suppe",
    "egg": "ei",
}
ENGLISH, GERMAN = list(MEANINGS), list(MEANINGS.values())
MAX_TOKENS = 16


def pairs_of(count: int, seed: int = 0, name: str = "pairs.csv") -> PairFile:
    """Return pairs of three words and their translation in another order."""
    generator = np.random.default_rng(seed)
    queries, documents = [], []
    for row in range(1, count + 1):
        words = generator.choice(len(ENGLISH), 3, replace=False)
        queries.append(Example(row, " ".join(ENGLISH[word] for word in words)))
        documents.append(
            Example(row, " ".join(GERMAN[word] for word in generator.permutation(words)))
        )
    return PairFile(Dataset(Path(name), tuple(queries)), Dataset(Path(name), tuple(documents)))


def word_tokenizer() -> Tokenizer:
    """Return a tokenizer with every word as a token.

    The vocabulary is given, because the trainer breaks ties at random.
    """
    words = ENGLISH + GERMAN
    tokenizer = train_word_pieces([" ".join(words)], vocab_size=200)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {piece: number for number, piece in enumerate([*special, *words])}
    tokenizer.model = models.WordPiece(vocab=vocabulary, unk_token="[UNK]")  # noqa: S106 - not a password
    return tokenizer


def tokens_of(pairs: PairFile, tokenizer: Tokenizer) -> PairTokens:
    """Return the token ids of pairs."""
    tokens, notes = tokenize_pairs(
        pairs, tokenizer, max_tokens=MAX_TOKENS, type_vocab_size=2, on_long_text="error"
    )
    assert notes == []
    return tokens


def encoder_for(tokenizer: Tokenizer) -> TiedEncoder:
    """Return an encoder with random weights."""
    return random_encoder(small_config(vocab_size=tokenizer.get_vocab_size()))


def tiny_run(**changes: float) -> SparseTraining:
    """Return a run on the pairs, the same whatever ran before it."""
    torch.manual_seed(0)
    tokenizer = word_tokenizer()
    training, validation = (
        tokens_of(pairs_of(count, seed), tokenizer) for count, seed in ((256, 0), (40, 1))
    )
    fields = {"epochs": 20, "learning_rate": 1e-2, "document_penalty": 1e-3, "query_penalty": 1e-3}
    return SparseTraining(
        model=encoder_for(tokenizer),
        training=training,
        validation=validation,
        config=SparseConfig(**(fields | changes)),  # type: ignore[arg-type]  # numbers of each field
    )
