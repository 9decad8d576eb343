"""Labels of a dataset, with targets and class weights for the loss.

Shapes: N rows, L labels.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fillmask_model.classification.data.dataset import Columns
from fillmask_model.encoder.classifier import ProblemType
from fillmask_model.fine_tuning.tables import Dataset

# (N,) int64 for one label per text, (N, L) float32 for several, (N,) float32 for regression
Targets: TypeAlias = NDArray[Any]


def label_names(training: Dataset, columns: Columns, problem_type: ProblemType) -> tuple[str, ...]:
    """Return the labels of the training rows in the order of the logits.

    Labels that are whole numbers come first, in numerical order. The other labels are in
    alphabetical order. The label of a regression is the name of its column.

    Raises:
        ValueError: the training rows have too few labels.
    """
    if problem_type == "regression":
        return (columns.label,)
    names = {label for example in training.examples for label in example.labels}
    fewest = 2 if problem_type == "single_label_classification" else 1
    if len(names) < fewest:
        raise ValueError(
            f"{training.path}: the training rows must have {fewest} or more labels "
            f"(got {', '.join(sorted(names)) or 'none'}); add rows with other labels"
        )
    return tuple(sorted(names, key=_rank))


def encode_targets(dataset: Dataset, labels: tuple[str, ...], problem_type: ProblemType) -> Targets:
    """Convert the labels or numbers of a dataset to targets of the loss.

    Raises:
        ValueError: a label does not occur in the training rows.
    """
    if problem_type == "regression":
        return np.array([example.value for example in dataset.examples], np.float32)
    numbers = {label: number for number, label in enumerate(labels)}
    for example in dataset.examples:
        if unknown := [label for label in example.labels if label not in numbers]:
            raise ValueError(
                f"{dataset.path}, row {example.row}: the training rows have no label "
                f"{unknown[0]!r}; add training rows with this label or remove the row"
            )
    if problem_type == "single_label_classification":
        return np.array([numbers[example.labels[0]] for example in dataset.examples], np.int64)
    targets = np.zeros((len(dataset.examples), len(labels)), np.float32)
    for row, example in enumerate(dataset.examples):
        targets[row, [numbers[label] for label in example.labels]] = 1
    return targets


def balanced_weights(
    targets: Targets, num_labels: int, problem_type: ProblemType
) -> NDArray[np.float32]:
    """Return weights (L,) with which rare labels influence the loss as much as frequent labels.

    With one label per text, the weight of a label with n of N rows is N / (L n). With several
    labels per text, the weight of such a label is (N - n) / n.

    Raises:
        ValueError: the problem is a regression, or a label of a multi-label problem occurs in every
            row.
    """
    if problem_type == "regression":
        raise ValueError("--class-weights must be none for regression (got balanced)")
    rows = len(targets)
    if problem_type == "single_label_classification":
        counts = np.bincount(targets, minlength=num_labels)
        return (rows / (num_labels * counts)).astype(np.float32)
    counts = targets.sum(axis=0)
    if (counts == rows).any():
        raise ValueError(
            "--class-weights must be none if every training row has the same label (got balanced)"
        )
    weights: NDArray[np.float32] = ((rows - counts) / counts).astype(np.float32)
    return weights


def _rank(label: str) -> tuple[bool, int, str]:
    is_number = label.isascii() and label.isdigit()
    return (not is_number, int(label) if is_number else 0, label)
