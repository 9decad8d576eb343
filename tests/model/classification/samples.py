"""Tiny tasks with labelled texts whose words determine the label."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from fillmask_model.classification.config import ClassifyConfig
from fillmask_model.classification.data.dataset import Columns, read_dataset
from fillmask_model.classification.data.labels import encode_targets, label_names
from fillmask_model.classification.prediction import LabelledTexts
from fillmask_model.classification.start import Start
from fillmask_model.classification.training import Epoch, FineTuning
from fillmask_model.encoder.classifier import ClassifierConfig, ProblemType
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.fine_tuning.tables import Dataset, Example
from fillmask_model.fine_tuning.tokens import tokenize

WORDS = {
    "animal": "cat dog fox bird hen",
    "colour": "red green blue pink grey",
    "food": "bread milk rice soup egg",
}
FILLERS = ["the", "a", "and", "of", "in"]
LABELS = tuple(WORDS)
TINY: dict[str, Any] = {
    "d_model": 16,
    "num_layers": 1,
    "num_heads": 2,
    "d_ff": 16,
    "max_positions": 16,
}
SINGLE: ProblemType = "single_label_classification"
MULTI: ProblemType = "multi_label_classification"


def topic_text(generator: np.random.Generator, *topics: str) -> str:
    """Return a text of three words per topic and some filler words, in random order."""
    words = [generator.choice(WORDS[topic].split()) for topic in topics for _ in range(3)]
    words += list(generator.choice(FILLERS, max(1, 8 - len(words))))
    return " ".join(generator.permutation(words))


def topic_rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return labelled rows with three alternating labels."""
    generator = np.random.default_rng(seed)
    topics = [LABELS[i % 3] for i in range(count)]
    return [{"text": topic_text(generator, topic), "label": topic} for topic in topics]


def write_rows(path: str | Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write rows as CSV, TSV or JSONL, depending on the suffix of the path."""
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
    """Return a dataset of texts and labels without a file.

    A label of type float becomes the example's value.
    """
    made = []
    for row, (text, label) in enumerate(examples, 1):
        if isinstance(label, float):
            made.append(Example(row, text, None, value=label))
        else:
            made.append(Example(row, text, None, (label,) if isinstance(label, str) else label))
    return Dataset(Path(name), tuple(made))


def read_text_rows(path: Path, problem_type: ProblemType = SINGLE, **columns: Any) -> Dataset:
    return read_dataset(path, Columns(**columns), problem_type)


class TinyTask:
    """Tokenized training and validation rows with a tiny encoder of random weights."""

    def __init__(
        self, training: Dataset, validation: Dataset, problem_type: ProblemType = SINGLE
    ) -> None:
        scratch = Start.from_scratch(training, None, None)
        self.tokenizer: Tokenizer = scratch.tokenizer
        config = EncoderConfig(**TINY, vocab_size=self.tokenizer.get_vocab_size())
        self.start = Start(config, None, self.tokenizer)
        self.labels = label_names(training, Columns(), problem_type)
        self.classifier = ClassifierConfig(
            labels=self.labels, problem_type=problem_type, pooling="mean", activation=None
        )
        self.training, self.validation = map(self.prepare, (training, validation))

    def prepare(self, dataset: Dataset) -> LabelledTexts:
        """Tokenize a dataset and encode its targets."""
        texts = tokenize(
            dataset, self.tokenizer, max_tokens=16, type_vocab_size=2, on_long_text="error"
        )
        targets = encode_targets(dataset, self.labels, self.classifier.problem_type)
        return LabelledTexts(texts, targets)

    def run(self, **changes: Any) -> FineTuning:
        """Return a run with changed hyperparameters."""
        weights = changes.pop("class_weights", None)
        config = ClassifyConfig(**({"epochs": 5, "learning_rate": 1e-2} | changes))
        return FineTuning(
            model=self.start.build(self.classifier, config.seed),
            training=self.training,
            validation=self.validation,
            config=config,
            class_weights=weights,
        )

    def train(self, **changes: Any) -> list[Epoch]:
        """Train with changed hyperparameters and return the results of all epochs."""
        epochs: list[Epoch] = []
        assert self.run(**changes).run(epochs.append)
        return epochs


def topic_task(*, shuffle: bool = False) -> TinyTask:
    """Return the task of predicting the topic.

    With `shuffle`, the labels are in random order.
    """
    rows = [(row["text"], row["label"]) for row in topic_rows(360)]
    if shuffle:
        labels = np.random.default_rng(1).permutation([label for _, label in rows])
        rows = [(text, str(label)) for (text, _), label in zip(rows, labels, strict=True)]
    return TinyTask(dataset_of(rows[:180]), dataset_of(rows[180:]))
