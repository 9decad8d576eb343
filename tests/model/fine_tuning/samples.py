"""Tiny tasks: texts whose words determine the label, and queries whose words have a translation."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models

from fillmask_model.checkpoints.checkpoint import save_checkpoint
from fillmask_model.encoder.classifier import ClassifierConfig, ProblemType
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.fine_tuning.classification import Classification, LabelledTexts, new_classifier
from fillmask_model.fine_tuning.config import ClassifyConfig, SparseConfig
from fillmask_model.fine_tuning.labels import encode_targets, label_names
from fillmask_model.fine_tuning.loop import Epoch, fine_tune
from fillmask_model.fine_tuning.pairs import Pairs
from fillmask_model.fine_tuning.sparse import SparseSearch
from fillmask_model.fine_tuning.tables import Dataset, Example
from fillmask_model.fine_tuning.tokens import TokenizedTexts, tokenize
from fillmask_model.tokenizers.word_pieces import train_word_pieces

WORDS = {
    "animal": "cat dog fox bird hen",
    "colour": "red green blue pink grey",
    "food": "bread milk rice soup egg",
}
LABELS = tuple(WORDS)
ENGLISH = " ".join(WORDS.values()).split()
# each word of a query means one word of a document
GERMAN = [
    *("katze", "hund", "fuchs", "vogel", "henne", "rot", "gruen", "blau", "rosa", "grau"),
    *("brot", "milch", "reis", "suppe", "ei"),
]
FILLERS = ["the", "a", "and", "of", "in"]
MAX_TOKENS = 16
SINGLE: ProblemType = "single_label_classification"
MULTI: ProblemType = "multi_label_classification"


def word_tokenizer() -> Tokenizer:
    """Return a tokenizer with every word as a token, because training breaks ties at random."""
    words = [*ENGLISH, *GERMAN, *FILLERS]
    tokenizer = train_word_pieces([" ".join(words)], vocab_size=200)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {piece: number for number, piece in enumerate([*special, *words])}
    tokenizer.model = models.WordPiece(vocab=vocabulary, unk_token="[UNK]")  # noqa: S106 - not a password
    return tokenizer


TOKENIZER = word_tokenizer()


def tiny_encoder() -> TiedEncoder:
    torch.manual_seed(0)
    sizes = {"d_model": 16, "num_layers": 1, "num_heads": 2, "d_ff": 16}
    sizes |= {"max_positions": MAX_TOKENS, "vocab_size": TOKENIZER.get_vocab_size()}
    return TiedEncoder(EncoderConfig.from_dict(sizes))


def save_start(directory: str) -> None:
    save_checkpoint(Path(directory), tiny_encoder(), TOKENIZER.to_str().encode())


def topic_text(generator: np.random.Generator, *topics: str) -> str:
    words = [generator.choice(WORDS[topic].split()) for topic in topics for _ in range(3)]
    words += list(generator.choice(FILLERS, max(1, 8 - len(words))))
    return " ".join(generator.permutation(words))


def topic_rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    generator = np.random.default_rng(seed)
    topics = [LABELS[i % 3] for i in range(count)]
    return [{"text": topic_text(generator, topic), "label": topic} for topic in topics]


def write_rows(path: str | Path, rows: Sequence[dict[str, Any]]) -> Path:
    path = Path(path)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path
    with path.open("w", newline="") as stream:
        delimiter = "\t" if path.suffix == ".tsv" else ","
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def dataset_of(examples: Sequence[tuple[str, Any]], name: str = "data.csv") -> Dataset:
    """Return texts with a label, several, or a number to predict."""

    def example(row: int, text: str, label: Any) -> Example:
        if isinstance(label, float):
            return Example(row, text, value=label)
        return Example(row, text, labels=(label,) if isinstance(label, str) else label)

    return Dataset(Path(name), tuple(example(row, *one) for row, one in enumerate(examples, 1)))


def refuse_notes(note: str) -> None:
    raise AssertionError(note)


tokens_of = partial(
    tokenize,
    tokenizer=TOKENIZER,
    max_tokens=MAX_TOKENS,
    type_vocab_size=2,
    truncate=False,
    note=refuse_notes,
)


def only(texts: TokenizedTexts, row: int) -> TokenizedTexts:
    assert texts.types is not None
    return replace(texts, ids=[texts.ids[row]], types=[texts.types[row]])


class TinyTask:
    def __init__(
        self, training: Dataset, validation: Dataset, problem_type: ProblemType = SINGLE
    ) -> None:
        labels = label_names(training, "label", problem_type)
        self.head = ClassifierConfig(
            labels=labels, problem_type=problem_type, pooling="mean", activation=None
        )
        self.training, self.validation = (
            LabelledTexts(tokens_of(one), encode_targets(one, labels, problem_type))
            for one in (training, validation)
        )

    def objective(self, config: ClassifyConfig) -> Classification:
        return Classification(
            model=new_classifier(tiny_encoder(), self.head, config.seed, from_scratch=True),
            head=self.head,
            training=self.training,
            validation=self.validation,
            config=config,
        )

    def train(self, **changes: Any) -> tuple[Classification, list[Epoch]]:
        config = ClassifyConfig(**({"epochs": 5, "learning_rate": 1e-2} | changes))
        objective, epochs = self.objective(config), list[Epoch]()
        torch.seed()  # the run has its own
        assert fine_tune(objective, config, epochs.append)
        return objective, epochs


def topic_task(rows: int = 120) -> TinyTask:
    """Return the topics of texts, with half of the rows for validation."""
    examples = [(row["text"], row["label"]) for row in topic_rows(rows)]
    return TinyTask(dataset_of(examples[: rows // 2]), dataset_of(examples[rows // 2 :]))


def translations(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return queries of three words with their translation in another order."""
    generator, rows = np.random.default_rng(seed), []
    for _ in range(count):
        words = generator.choice(len(ENGLISH), 3, replace=False)
        document = " ".join(GERMAN[word] for word in generator.permutation(words))
        rows.append({"query": " ".join(ENGLISH[word] for word in words), "document": document})
    return rows


def pairs_of(rows: Sequence[dict[str, Any]]) -> Pairs:
    queries, documents = (
        dataset_of([(row[side], "") for row in rows]) for side in ("query", "document")
    )
    return Pairs.of(queries, documents, tokens_of)


def sparse_search(config: SparseConfig) -> SparseSearch:
    """Return the search of translations, the same whatever ran before it."""
    training, validation = (pairs_of(translations(*args)) for args in ((128, 0), (40, 1)))
    return SparseSearch(
        model=tiny_encoder(), training=training, validation=validation, config=config
    )
