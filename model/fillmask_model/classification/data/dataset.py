"""Reader of labelled texts in CSV, TSV and JSONL files.

A row has a text, a label and optionally a second text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fillmask.tables.delimited import DEFAULT, Dialect
from fillmask_model.encoder.classifier import ProblemType
from fillmask_model.fine_tuning.tables import (
    Dataset,
    Example,
    RowParser,
    check_columns,
    read_table,
    text_cell,
)

LABEL_SEPARATOR = "|"  # between the labels of a multi-label example in CSV and TSV files
_PAIR_COLUMN = "text_pair"


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns with texts and labels.

    Attributes:
        text_pair: column of the second text. None means the column text_pair if the file has this
            column.
        dialect: options for reading CSV and TSV files.
    """

    text: str = "text"
    text_pair: str | None = None
    label: str = "label"
    dialect: Dialect = DEFAULT


def read_dataset(path: Path, columns: Columns, problem_type: ProblemType) -> Dataset:
    """Read and check the examples of a file.

    Raises:
        ValueError: the format, a column, a text or a label is missing or invalid. The message names
            the file and the first invalid rows.
    """

    def parser_of(names: list[str]) -> tuple[tuple[str | None, ...], RowParser[Example]]:
        check_columns(
            path,
            names,
            (
                ("--text-column", columns.text),
                ("--text-pair-column", columns.text_pair),
                ("--label-column", columns.label),
            ),
        )
        pair = columns.text_pair or (_PAIR_COLUMN if _PAIR_COLUMN in names else None)
        used = (columns.text, pair, columns.label)
        return used, _Parser(*used, problem_type).example

    examples, ignored = read_table(path, columns.dialect, columns.text, parser_of)
    return Dataset(path, tuple(examples), ignored)


@dataclass(frozen=True, slots=True)
class _Parser:
    text: str
    text_pair: str | None
    label: str
    problem_type: ProblemType

    def example(self, number: int, row: dict[str, Any]) -> Example:
        text = text_cell(row, self.text)
        text_pair = None if self.text_pair is None else text_cell(row, self.text_pair)
        if self.label not in row:
            raise ValueError(f"{self.label} is missing; complete or remove the row")
        label = row[self.label]
        if self.problem_type == "regression":
            return Example(number, text, text_pair, value=_number(label, self.label))
        if self.problem_type == "single_label_classification":
            return Example(number, text, text_pair, (_label_name(label, self.label),))
        return Example(number, text, text_pair, _label_names(label, self.label))


def _number(value: object, column: str) -> float:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return number
    raise ValueError(f"{column} must be a number (got {value!r})")


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
