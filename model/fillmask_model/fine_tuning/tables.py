"""Reader of tables with texts, in CSV, TSV and JSONL files.

The reader decompresses `.xz` files. The header of CSV and TSV files names the columns. In TSV
files, a quotation mark is an ordinary character. Row numbers start at 1 and exclude the header and
blank lines.
"""

from __future__ import annotations

import csv
import json
import lzma
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar

SUFFIXES = (".csv", ".tsv", ".jsonl")
_SHOWN_PROBLEMS = 5
_MAX_CELL_CHARACTERS = 2**24

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
    parser_of: Callable[[list[str]], tuple[Sequence[str | None], RowParser[_Row]]],
) -> tuple[list[_Row], tuple[str, ...]]:
    """Read and check all rows of a file.

    Args:
        parser_of: function that checks the names of the columns and returns the names in use with
            a parser of a row and its number, whose ValueError describes an invalid row.

    Returns:
        The parsed rows and the names of the other columns.

    Raises:
        ValueError: the format, a column or a row is missing or invalid. The message names the file
            and the first invalid rows.
    """
    rows = _read_rows(path)
    try:
        first = next(rows, None)
        if first is None:
            raise ValueError(f"{path} must contain at least one row")
        used, parse = parser_of(list(first))
        parsed, problems = [], []
        for number, row in enumerate(_chain(first, rows), 1):
            try:
                parsed.append(parse(number, row))
            except ValueError as error:
                problems.append(f"{path}, row {number}: {error}")
    except (UnicodeDecodeError, EOFError, lzma.LZMAError) as error:
        raise ValueError(f"{path} must be UTF-8 text or a complete .xz file ({error})") from None
    if problems:
        more = len(problems) - _SHOWN_PROBLEMS
        rest = [f"number of further invalid rows in {path}: {more:,}"] if more > 0 else []
        raise ValueError("\n".join([*problems[:_SHOWN_PROBLEMS], *rest]))
    return parsed, tuple(name for name in first if name not in used)


def check_columns(path: Path, names: list[str], wanted: Sequence[tuple[str, str | None]]) -> None:
    """Check that a file has some columns.

    Args:
        wanted: flag of the command line and name of each column. None for an optional column.

    Raises:
        ValueError: a column is missing.
    """
    for flag, column in wanted:
        if column is not None and column not in names:
            raise ValueError(
                f"{path} has no column {column!r} (got {', '.join(names)}); set {flag}"
            )


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
