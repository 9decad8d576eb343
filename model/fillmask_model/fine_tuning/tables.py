"""Texts in the rows of CSV, TSV and JSONL files, which `fillmask` reads alike.

Row numbers start at 1 and exclude the header and blank lines.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, filterfalse
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from fillmask.tables.delimited import BLANK, Dialect, Table
from fillmask.tables.streams import COMPRESSIONS, open_text, read_lines, suffix_of

SUFFIXES = (".csv", ".tsv", ".jsonl")
_SHOWN_PROBLEMS = 5

_Row = TypeVar("_Row")
RowParser: TypeAlias = Callable[[int, dict[str, Any]], _Row]


@dataclass(frozen=True, slots=True)
class Example:
    """Text or pair of texts, with its labels.

    Attributes:
        row: number of the row in its file, from 1.
        text: the text, or the first text of a pair.
        text_pair: second text of a pair. None for a single text.
        labels: label names of a classification example. Otherwise empty.
        value: number to predict for regression. Otherwise 0.
    """

    row: int
    text: str
    text_pair: str | None = None
    labels: tuple[str, ...] = ()
    value: float = 0.0

    @property
    def texts(self) -> tuple[str, str | None]:
        """Both texts, by which rows are the same."""
        return self.text, self.text_pair


@dataclass(frozen=True, slots=True)
class Dataset:
    """Examples of a file.

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


def read_table(
    path: Path,
    dialect: Dialect,
    flags: Mapping[str, str | None],
    parser_of: Callable[[list[str]], tuple[Iterable[str], RowParser[_Row]]],
) -> tuple[list[_Row], tuple[str, ...]]:
    """Read and check all rows of a file.

    Args:
        flags: columns that the file must have, by their flag on the command line. None for one that
            it need not have.
        parser_of: function of the names of all columns that returns those in use with a parser of a
            row and its number, whose ValueError describes an invalid row.

    Returns:
        The parsed rows and the names of the other columns.

    Raises:
        ValueError: the format, a column or a row is missing or invalid. The message names the file
            and the first invalid rows.
    """
    wanted = {flag: column for flag, column in flags.items() if column is not None}
    names, rows = _read_rows(path, dialect, next(iter(wanted.values())))
    empty = f"{path} must contain at least one row"
    if not names:
        raise ValueError(empty)
    for flag, column in wanted.items():
        if column not in names:
            raise ValueError(
                f"{path} has no column {column!r} (got {', '.join(names)}); set {flag}"
            )
    used, parse = parser_of(names)
    parsed, problems = [], []
    for number, row in enumerate(rows, 1):
        try:
            parsed.append(parse(number, row))
        except ValueError as error:
            problems.append(f"{path}, row {number}: {error}")
    if not parsed and not problems:
        raise ValueError(empty)
    if problems:
        more = len(problems) - _SHOWN_PROBLEMS
        rest = [f"number of further invalid rows in {path}: {more:,}"] if more > 0 else []
        raise ValueError("\n".join([*problems[:_SHOWN_PROBLEMS], *rest]))
    return parsed, tuple(name for name in names if name not in used)


def text_cell(row: dict[str, Any], column: str) -> str:
    """Return the text in a column.

    Raises:
        ValueError: the text is missing, blank or not a text.
    """
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


def _read_rows(
    path: Path, dialect: Dialect, wanted: str
) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """Return the columns of a file, of its first row in JSONL, and the rows."""
    suffix = suffix_of(path)
    if suffix not in SUFFIXES:
        raise ValueError(
            f"{path} must end in {', '.join(SUFFIXES)} or one of these with "
            f"{', '.join(COMPRESSIONS)} (got {suffix!r})"
        )
    if suffix == ".jsonl":
        rows = _json_rows(path, dialect)
        first = next(rows, {})
        return list(first), chain([first] if first else [], rows)
    table = Table(path, str(path), dialect, wanted, lambda note: sys.stderr.write(f"{note}\n"))
    return list(table.columns), _cell_rows(path, table)


def _json_rows(path: Path, dialect: Dialect) -> Iterator[dict[str, Any]]:
    with open_text(path, dialect.encoding) as stream:
        lines = filter(None, chain.from_iterable(read_lines(stream, sys.maxsize)))
        for number, line in enumerate(filterfalse(bytes.isspace, lines), 1):
            try:
                row = json.loads(line)
            except ValueError as error:
                raise ValueError(
                    f"{path}, row {number} is not valid JSON ({error}); correct the syntax"
                ) from None
            if not isinstance(row, dict):
                raise ValueError(f"{path}, row {number} must be a JSON object (got {row!r})")  # noqa: TRY004 - an invalid file is a ValueError
            yield row


def _cell_rows(path: Path, table: Table) -> Iterator[dict[str, Any]]:
    for row in table.records():
        if row.problem is None:
            yield dict(zip(table.columns, row.cells, strict=True))
        elif row.problem != BLANK:
            raise ValueError(f"{path}, line {row.line} {row.problem}")
