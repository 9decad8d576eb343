"""Runs of a comparison.

Each run has a result file, so that an interrupted comparison can continue.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fillmask_model.classification.comparison.baselines import (
    bag_of_words_accuracy,
    majority_accuracy,
)
from fillmask_model.classification.comparison.results import Method, RunResult
from fillmask_model.classification.config import ClassifyConfig
from fillmask_model.classification.prediction import LabelledTexts
from fillmask_model.classification.report import write_json
from fillmask_model.classification.start import Start
from fillmask_model.classification.training import Epoch, FineTuning
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.files import read_object
from fillmask_model.fine_tuning.tables import Dataset

KEY_NAME = "comparison.json"
RUNS_NAME = "runs"


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonData:
    """Rows of a comparison.

    Attributes:
        training, validation: examples for training and for validation.
        training_texts, validation_texts: token ids and targets of the same examples.
    """

    training: Dataset
    validation: Dataset
    training_texts: LabelledTexts
    validation_texts: LabelledTexts


class Comparison:
    """Training runs from a checkpoint and from scratch, with baselines.

    Args:
        starts: starting point and hyperparameters by method.
        epochs: number of epochs by number of training rows.
        device: "cpu" or "cuda".
    """

    def __init__(
        self,
        data: ComparisonData,
        starts: Mapping[Method, tuple[Start, ClassifyConfig]],
        epochs: Mapping[int, int],
        classifier: ClassifierConfig,
        directory: Path,
        device: str,
    ) -> None:
        self._data, self._starts, self._classifier = data, starts, classifier
        self._epochs = epochs
        self._directory, self._device = directory / RUNS_NAME, device
        self._directory.mkdir(parents=True, exist_ok=True)

    def run(
        self, method: Method, size: int, seed: int, stop: Callable[[], bool]
    ) -> RunResult | None:
        """Return the result of a run, from its file if the run is complete.

        Returns:
            The result. None if `stop` returned True before the end of the run.
        """
        path = self._directory / RunResult(method, size, seed, ()).name
        if path.is_file():
            finished = RunResult.from_dict(read_object(path))
            if method not in self._starts or len(finished.accuracies) == self._epochs[size]:
                return finished
        rows = stratified_order(self._data.training_texts.targets, seed)[:size]
        if method in self._starts:
            accuracies = self._train(method, rows, seed, stop)
            if accuracies is None:
                return None
        else:
            accuracies = [self._baseline(method, rows)]
        result = RunResult(method, size, seed, tuple(accuracies))
        write_json(path, result.to_dict())
        return result

    def _train(
        self, method: Method, rows: NDArray[np.int64], seed: int, stop: Callable[[], bool]
    ) -> list[float] | None:
        start, config = self._starts[method]
        accuracies: list[float] = []

        def add_epoch(epoch: Epoch) -> None:
            accuracies.append(epoch.metrics["accuracy"])

        run = FineTuning(
            model=start.build(self._classifier, seed),
            training=self._data.training_texts.select(rows),
            validation=self._data.validation_texts,
            config=replace(config, seed=seed, epochs=self._epochs[len(rows)]),
            device=self._device,
        )
        return accuracies if run.run(add_epoch, stop, f"{method} {len(rows)} {seed}") else None

    def _baseline(self, method: Method, rows: NDArray[np.int64]) -> float:
        targets = self._data.training_texts.targets[rows]
        expected = self._data.validation_texts.targets
        if method == "majority":
            return majority_accuracy(targets, expected)
        examples = [self._data.training.examples[row] for row in rows]
        validation = list(self._data.validation.examples)
        return bag_of_words_accuracy(examples, targets, validation, expected)


def stratified_order(targets: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Return a seeded random order of rows.

    For every n, the first n rows have nearly the same shares of labels as all rows.
    """
    generator = np.random.default_rng(seed)
    place = np.empty(len(targets))
    for label in np.unique(targets):
        rows = generator.permutation(np.flatnonzero(targets == label))
        # evenly spaced places in (0, 1), with one random shift per label
        place[rows] = (np.arange(len(rows)) + generator.random()) / len(rows)
    return np.argsort(place, kind="stable")


def is_own_comparison(directory: Path) -> bool:
    """Return whether `check_key` has written the inputs in a directory."""
    try:
        return read_object(directory / KEY_NAME).keys() >= {"data", "checkpoint"}
    except (ValueError, OSError):
        return False


def check_key(directory: Path, key: dict[str, Any]) -> None:
    """Check that the results in a directory come from the given inputs.

    If the directory has no results yet, the function writes the inputs to the directory.

    Raises:
        ValueError: the directory has results that come from other inputs.
    """
    path = directory / KEY_NAME
    key = json.loads(json.dumps(key))  # the form that a JSON file returns
    if path.is_file():
        before = read_object(path)
        changed = sorted(n for n in before.keys() | key if before.get(n) != key.get(n))
        if changed:
            raise ValueError(
                f"{path} has other values of {', '.join(changed)}; use another --output, or "
                f"delete {directory} to start again"
            )
        return
    directory.mkdir(parents=True, exist_ok=True)
    write_json(path, key)
