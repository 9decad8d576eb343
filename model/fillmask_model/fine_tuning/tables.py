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
from typing import Any, NamedTuple, TypeVar

from fillmask.tables.delimited import BLANK, Dialect, Table
from fillmask.tables.streams import COMPRESSIONS, open_text, read_lines, suffix_of

SUFFIXES = (".csv", ".tsv", ".jsonl")
_SHOWN_PROBLEMS = 5

_Row = TypeVar("_Row")


class Entity(NamedTuple):
    """Part of a text with a label, from a start to an end in characters."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class Example:
    """Text or pair of texts, with its labels, its number or its entities."""

    row: int  # in its file, from 1
    text: str
    text_pair: str | None = None
    labels: tuple[str, ...] = ()
    value: float = 0.0
    entities: tuple[Entity, ...] = ()  # in the order of the text

    @property
    def texts(self) -> tuple[str, str | None]:
        return self.text, self.text_pair


@dataclass(frozen=True, slots=True)
class Dataset:
    path: Path
    examples: tuple[Example, ...]
    ignored_columns: tuple[str, ...] = ()

    @property
    def has_pairs(self) -> bool:
        return self.examples[0].text_pair is not None


def open_table(
    path: Path, dialect: Dialect, flags: Mapping[str, str | None]
) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """Return the columns of a file, of its first row in JSONL, and its rows.

    Args:
        flags: columns that the file must have, by their flag on the command line. None for one that
            it need not have.
    """
    suffix = suffix_of(path)
    if suffix not in SUFFIXES:
        raise ValueError(
            f"{path} must end in {', '.join(SUFFIXES)} or one of these with "
            f"{', '.join(COMPRESSIONS)} (got {suffix!r})"
        )
    wanted = {flag: column for flag, column in flags.items() if column is not None}
    if suffix == ".jsonl":
        rows = _json_rows(path, dialect)
        first = next(rows, {})
        names, rows = list(first), chain([first], rows)
    else:
        key = next(iter(wanted.values()))
        table = Table(path, str(path), dialect, key, lambda note: sys.stderr.write(f"{note}\n"))
        names, rows = list(table.columns), _cell_rows(path, table)
    for flag, column in wanted.items() if names else ():
        if column not in names:
            raise ValueError(
                f"{path} has no column {column!r} (got {', '.join(names)}); set {flag}"
            )
    return names, rows if names else iter([])


def parse_rows(
    path: Path, rows: Iterable[dict[str, Any]], parse: Callable[[int, dict[str, Any]], _Row]
) -> list[_Row]:
    """Parse all rows of a file, of which a ValueError names the first invalid ones."""
    parsed, problems = [], []
    for number, row in enumerate(rows, 1):
        try:
            parsed.append(parse(number, row))
        except ValueError as error:
            problems.append(f"{path}, row {number}: {error}")
    if problems:
        more = len(problems) - _SHOWN_PROBLEMS
        rest = [f"number of further invalid rows in {path}: {more:,}"] if more > 0 else []
        raise ValueError("\n".join([*problems[:_SHOWN_PROBLEMS], *rest]))
    if not parsed:
        raise ValueError(f"{path} must contain at least one row")
    return parsed


def cell(row: dict[str, Any], column: str) -> Any:
    if column not in row:
        raise ValueError(f"{column} is missing; complete or remove the row")
    return row[column]


def text_cell(row: dict[str, Any], column: str) -> str:
    value = cell(row, column)
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
