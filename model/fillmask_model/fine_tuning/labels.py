"""Labelled texts of a file, and targets of the loss. Shapes: N rows, L labels."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fillmask.tables.delimited import DEFAULT, Dialect
from fillmask_model.encoder.classifier import ProblemType
from fillmask_model.fine_tuning.entities import OUTSIDE, parse_entities
from fillmask_model.fine_tuning.tables import (
    Dataset,
    Example,
    cell,
    open_table,
    parse_rows,
    text_cell,
)

LABEL_SEPARATOR = "|"  # between the labels of a multi-label example in CSV and TSV files
TOKENS: Final = "token_classification"
_PAIR_COLUMN = "text_pair"

# (N,) int64 for one label per text, (N, L) float32 for several, (N,) float32 for regression,
# (N, T) int32 for labels of tokens
Targets: TypeAlias = NDArray[Any]
Problem: TypeAlias = ProblemType | Literal["token_classification"]


class Columns(NamedTuple):
    """Names of the columns with texts and labels, and options for reading CSV and TSV files."""

    text: str = "text"
    text_pair: str | None = None  # the column text_pair if the file has it
    label: str = "label"
    dialect: Dialect = DEFAULT


def read_dataset(path: Path, columns: Columns, problem_type: Problem) -> Dataset:
    """Read and check the examples of a file, whose error names the first invalid rows."""
    flags = {
        "--text-column": columns.text,
        "--text-pair-column": columns.text_pair,
        "--label-column": columns.label,
    }
    names, rows = open_table(path, columns.dialect, flags)
    has_pairs = _PAIR_COLUMN in names and problem_type != TOKENS
    pair = columns.text_pair or (_PAIR_COLUMN if has_pairs else None)

    def parse(number: int, row: dict[str, Any]) -> Example:
        text = text_cell(row, columns.text)
        if problem_type == TOKENS:
            entities = parse_entities(cell(row, columns.label), columns.label, text)
            own = tuple(sorted({one.label for one in entities}))
            return Example(number, text, labels=own, entities=entities)
        text_pair = None if pair is None else text_cell(row, pair)
        label = cell(row, columns.label)
        if problem_type == "regression":
            return Example(number, text, text_pair, value=_number(label, columns.label))
        read = _label_names if problem_type == "multi_label_classification" else _single_label
        return Example(number, text, text_pair, read(label, columns.label))

    ignored = [name for name in names if name not in (columns.text, pair, columns.label)]
    return Dataset(path, tuple(parse_rows(path, rows, parse)), tuple(ignored))


def label_names(training: Dataset, column: str, problem_type: Problem) -> tuple[str, ...]:
    """Return the labels of the training rows in the order of the logits.

    Labels that are whole numbers come first, in numerical order. The other labels are in
    alphabetical order. The label of a regression is the name of its column. Tokens have O, B-X and
    I-X for each label X of entities.
    """
    if problem_type == "regression":
        return (column,)
    names = {label for example in training.examples for label in example.labels}
    fewest = 2 if problem_type == "single_label_classification" else 1
    if len(names) < fewest:
        raise ValueError(
            f"{training.path}: the training rows must have {fewest} or more labels "
            f"(got {', '.join(sorted(names)) or 'none'}); add rows with other labels"
        )
    ranked = tuple(sorted(names, key=_rank))
    if problem_type == TOKENS:
        return (OUTSIDE, *(f"{tag}-{name}" for name in ranked for tag in "BI"))
    return ranked


def encode_targets(dataset: Dataset, labels: tuple[str, ...], problem_type: ProblemType) -> Targets:
    if problem_type == "regression":
        return np.array([example.value for example in dataset.examples], np.float32)
    numbers = {label: number for number, label in enumerate(labels)}
    chosen = []
    for example in dataset.examples:
        try:
            chosen.append([numbers[label] for label in example.labels])
        except KeyError as error:
            raise ValueError(
                f"{dataset.path}, row {example.row}: the training rows have no label "
                f"{error.args[0]!r}; add training rows with this label or remove the row"
            ) from None
    if problem_type == "single_label_classification":
        return np.array(chosen, np.int64)[:, 0]
    targets = np.zeros((len(chosen), len(labels)), np.float32)
    for row, columns in enumerate(chosen):
        targets[row, columns] = 1
    return targets


def _rank(label: str) -> tuple[bool, int, str]:
    is_number = label.isascii() and label.isdigit()
    return (not is_number, int(label) if is_number else 0, label)


def _number(value: object, column: str) -> float:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return number
    raise ValueError(f"{column} must be a number (got {value!r})")


def _single_label(value: object, column: str) -> tuple[str]:
    return (_label_name(value, column),)


def _label_name(value: object, column: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"{column} must be a text or a whole number (got {value!r})")  # noqa: TRY004 - an invalid file is a ValueError
    if not value.strip():
        raise ValueError(f"{column} must not be blank; complete or remove the row")
    return value


def _label_names(value: object, column: str) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(LABEL_SEPARATOR) if value.strip() else []
    if not isinstance(value, list):
        raise ValueError(f"{column} must be a list of labels (got {value!r})")  # noqa: TRY004 - an invalid file is a ValueError
    names = tuple(_label_name(one, column) for one in value)
    if len(set(names)) < len(names):
        raise ValueError(f"{column} must not repeat a label (got {', '.join(names)})")
    return names
