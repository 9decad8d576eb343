"""Reader of labelled texts in CSV, TSV and JSONL files.

A row has a text, a label and optionally a second text. The reader decompresses `.xz` files. The
header of CSV and TSV files names the columns. In TSV files, a quotation mark is an ordinary
character. Row numbers start at 1 and exclude the header and blank lines.
"""

from __future__ import annotations

import csv
import json
import lzma
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fillmask_model.encoder.classifier import ProblemType

LABEL_SEPARATOR = "|"  # between the labels of a multi-label example in CSV and TSV files
SUFFIXES = (".csv", ".tsv", ".jsonl")
_PAIR_COLUMN = "text_pair"
_SHOWN_PROBLEMS = 5
_MAX_CELL_CHARACTERS = 2**24


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns with texts and labels.

    Attributes:
        text_pair: column of the second text. None means the column text_pair if the file has this
            column.
    """

    text: str = "text"
    text_pair: str | None = None
    label: str = "label"


@dataclass(frozen=True, slots=True)
class Example:
    """Labelled text or pair of texts.

    Attributes:
        row: number of the row in its file, from 1.
        text: the text, or the first text of a pair.
        text_pair: second text of a pair. None for a single text.
        labels: label names of a classification example. Empty for regression.
        value: number to predict for regression. 0 for classification.
    """

    row: int
    text: str
    text_pair: str | None
    labels: tuple[str, ...] = ()
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class Dataset:
    """Labelled examples of a file.

    Attributes:
        path: file to name in error messages.
        examples: examples in file order.
        ignored_columns: columns that training does not use.
    """

    path: Path
    examples: tuple[Example, ...]
    ignored_columns: tuple[str, ...] = ()

    @property
    def has_pairs(self) -> bool:
        """Presence of a second text in the examples."""
        return self.examples[0].text_pair is not None


def read_dataset(path: Path, columns: Columns, problem_type: ProblemType) -> Dataset:
    """Read and check the examples of a file.

    Raises:
        ValueError: the format, a column, a text or a label is missing or invalid. The message names
            the file and the first invalid rows.
    """
    rows = _read_rows(path)
    try:
        first = next(rows, None)
        if first is None:
            raise ValueError(f"{path} must contain at least one row")
        names = list(first)
        _check_columns(path, names, columns)
        pair = columns.text_pair or (_PAIR_COLUMN if _PAIR_COLUMN in names else None)
        used = (columns.text, pair, columns.label)
        parse = _Parser(columns.text, pair, columns.label, problem_type)
        examples, problems = [], []
        for number, row in enumerate(_chain(first, rows), 1):
            try:
                examples.append(parse.example(number, row))
            except ValueError as error:
                problems.append(f"{path}, row {number}: {error}")
    except (UnicodeDecodeError, EOFError, lzma.LZMAError) as error:
        raise ValueError(f"{path} must be UTF-8 text or a complete .xz file ({error})") from None
    if problems:
        more = len(problems) - _SHOWN_PROBLEMS
        rest = [f"number of further invalid rows in {path}: {more:,}"] if more > 0 else []
        raise ValueError("\n".join([*problems[:_SHOWN_PROBLEMS], *rest]))
    return Dataset(path, tuple(examples), tuple(name for name in names if name not in used))


@dataclass(frozen=True, slots=True)
class _Parser:
    text: str
    text_pair: str | None
    label: str
    problem_type: ProblemType

    def example(self, number: int, row: dict[str, Any]) -> Example:
        text = _text(row, self.text)
        text_pair = None if self.text_pair is None else _text(row, self.text_pair)
        if self.label not in row:
            raise ValueError(f"{self.label} is missing; complete or remove the row")
        label = row[self.label]
        if self.problem_type == "regression":
            return Example(number, text, text_pair, value=_number(label, self.label))
        if self.problem_type == "single_label_classification":
            return Example(number, text, text_pair, (_label_name(label, self.label),))
        return Example(number, text, text_pair, _label_names(label, self.label))


def _read_rows(path: Path) -> Iterator[dict[str, Any]]:
    suffix = Path(path.name.removesuffix(".xz")).suffix
    if suffix not in SUFFIXES:
        raise ValueError(
            f"{path} must end in {', '.join(SUFFIXES)} or one of these with .xz (got {suffix!r})"
        )
    with _open(path) as stream:
        yield from (
            _json_rows(path, stream) if suffix == ".jsonl" else _cell_rows(path, stream, suffix)
        )


def _open(path: Path) -> IO[str]:
    if path.suffix == ".xz":
        return lzma.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _json_rows(path: Path, stream: IO[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(filter(str.strip, stream), 1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ValueError(
                f"{path}, row {number} is not valid JSON ({error}); correct the syntax"
            ) from None
        if not isinstance(row, dict):
            raise ValueError(f"{path}, row {number} must be a JSON object (got {line.strip()!r})")  # noqa: TRY004 - an invalid file is a ValueError
        yield row


def _cell_rows(path: Path, stream: IO[str], suffix: str) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(_MAX_CELL_CHARACTERS)  # the cell of an unclosed quote is long
    if suffix == ".tsv":
        reader = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(stream, strict=True)
    try:
        header = next(reader, [])
        if repeated := sorted({name for name in header if header.count(name) > 1}):
            raise ValueError(f"{path} has two columns {repeated[0]!r}; rename one")
        for number, cells in enumerate(filter(None, reader), 1):
            if len(cells) != len(header):
                raise ValueError(
                    f"{path}, row {number} must have as many cells as the header, {len(header)} "
                    f"(got {len(cells)})"
                )
            yield dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {reader.line_num} is not valid CSV ({error}); correct the syntax"
        ) from None


def _chain(first: dict[str, Any], rest: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield first
    yield from rest


def _check_columns(path: Path, names: list[str], columns: Columns) -> None:
    for flag, wanted in (
        ("--text-column", columns.text),
        ("--text-pair-column", columns.text_pair),
        ("--label-column", columns.label),
    ):
        if wanted is not None and wanted not in names:
            raise ValueError(
                f"{path} has no column {wanted!r} (got {', '.join(names)}); set {flag}"
            )


def _text(row: dict[str, Any], column: str) -> str:
    if column not in row:
        raise ValueError(f"{column} is missing; complete or remove the row")
    value = row[column]
    if not isinstance(value, str):
        raise ValueError(f"{column} must be a text (got {value!r})")  # noqa: TRY004 - an invalid file is a ValueError
    if not value.strip():
        raise ValueError(f"{column} must not be blank; complete or remove the row")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{column} has an unpaired surrogate escape ({error}); remove it or complete the pair"
        ) from None
    return value


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
