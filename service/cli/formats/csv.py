"""CSV: rows in, rows out."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from service.cli.errors import CommandError
from service.cli.formats.answers import fills_of, problem_of
from service.cli.formats.base import (
    BLOCK_ROWS,
    ERROR,
    Block,
    Fields,
    ListBlock,
    OutputOptions,
    Rows,
    Unreadable,
    Write,
    as_json,
    cut,
    is_text,
    refuse_clash,
    without_blank_end,
)
from service.cli.formats.durable_files import create, sync
from service.cli.formats.lines import MAX_LINE_BYTES
from service.errors import quote
from service.tasks.options import FillOptions


@dataclass(frozen=True)
class CsvBlock(ListBlock):
    """Cells, a list a row.

    Attributes:
        columns: their names.
    """

    rows: Sequence[list[str]]
    columns: tuple[str, ...]

    def fields(self) -> list[Fields | Unreadable]:
        """See `Block`."""
        return [self._read(cells) for cells in self.rows]

    def _read(self, cells: list[str]) -> Fields | Unreadable:
        if len(cells) != len(self.columns):
            found = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
            named = len(self.columns)
            return Unreadable(f"The row has {found}, and the first one names {named} columns.")
        if not all(map(is_text, cells)):
            return Unreadable("The row is not valid UTF-8.")
        return dict(zip(self.columns, cells, strict=True))


class CsvRows(Rows):
    """The rows of a CSV file; blank lines at its end are none.

    Args:
        path: the file.

    Raises:
        CommandError: its first row does not name the columns.
    """

    row_parameters = False

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._path = path
        header = next(self._cells(), None)
        if header is None:
            raise CommandError(f"{self.name} is empty; its first row must name the columns.")
        if not all(map(is_text, header)):
            raise CommandError(f"{self.name}: the first row is not valid UTF-8.")
        for place, column in enumerate(header):
            if column in header[:place]:
                raise CommandError(f"{self.name} has two columns {quote(column)}.")
        self.columns: tuple[str, ...] = tuple(header)

    def count(self) -> int:
        """See `Rows`."""
        return sum(map(len, self._batches()))

    def blocks(
        self,
        start: int = 0,
        stop: int | None = None,
        only: Sequence[str] | None = None,  # noqa: ARG002 - nothing is gained by less of a line
    ) -> Iterator[Block]:
        """See `Rows`."""
        for first, rows in cut(self._batches(), start, stop):
            yield CsvBlock(first, rows, self.columns)

    def _batches(self) -> Iterator[list[list[str]]]:
        rows = (
            [] if len(cells) == 1 and cells[0].isspace() else cells
            for cells in islice(self._cells(), 1, None)
        )
        batches = iter(lambda: list(islice(rows, BLOCK_ROWS)), [])
        return without_blank_end(batches, [])

    def _cells(self) -> Iterator[list[str]]:
        csv.field_size_limit(MAX_LINE_BYTES)
        # what is no UTF-8 is kept apart as halves of characters, so that its row can be named
        with self._path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
            reader = csv.reader(self._lines(stream), strict=True)
            try:
                yield from reader
            except csv.Error as error:
                raise CommandError(
                    f"{self.name}, line {reader.line_num} is not valid CSV: {error}."
                ) from error

    def _lines(self, stream: TextIO) -> Iterator[str]:
        """The lines of a stream, of which one may be as long as all of it."""
        number = 0
        while line := stream.readline(MAX_LINE_BYTES):
            number += 1
            if len(line) == MAX_LINE_BYTES and not line.endswith("\n"):
                raise CommandError(
                    f"{self.name}, line {number} is not valid CSV: longer than {MAX_LINE_BYTES} "
                    "characters."
                )
            yield line


_PLACES = ("row", "mask", "rank")
_ALWAYS = ("score", "token", "token_str", "sequence")
_SOMETIMES = ("log_prob", "target_score", "tokens", "token_strs", "window")


class CsvOutput:
    """Writes CSV.

    Args:
        rows: what is written; all are looked through where each has fields of its own.
        given: what the rows are given.

    Raises:
        CommandError: the rows have a field of the same name.
    """

    def __init__(self, rows: Rows, given: OutputOptions) -> None:
        columns = _columns_of(rows)
        sometimes = _SOMETIMES if rows.row_parameters else _of_fills(given.options)
        self._fill_columns = (*_ALWAYS, *sometimes)
        errors = (ERROR,) if given.errors else ()
        self._own_columns = (*_PLACES, *self._fill_columns, *errors)
        self.reserved = self._own_columns if rows.columns is None and given.errors else ()
        if not self.reserved:
            refuse_clash(rows.name, columns, self._own_columns)
        self._columns = tuple(column for column in columns if column not in self.reserved)

    @contextmanager
    def writing(self, path: Path) -> Iterator[Write]:
        """See `Output`."""
        with io.TextIOWrapper(create(path), encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow((*self._columns, *self._own_columns))

            def write(block: Block, answers: Sequence[bytes]) -> None:
                pairs = zip(block.fields(), answers, strict=True)
                for number, (fields, answer) in enumerate(pairs, block.first + 1):
                    writer.writerows(self._lines(number, fields, answer))

            yield write
            sync(stream, path)

    def _lines(
        self, number: int, fields: Fields | Unreadable, answer: bytes
    ) -> Iterator[list[str]]:
        """A row's lines."""
        problem = problem_of(answer)
        readable = problem is None or problem.readable
        known = {} if isinstance(fields, Unreadable) or not readable else fields
        row = [_cell(known.get(column)) for column in self._columns]
        if problem:
            empty = [""] * (len(self._own_columns) - 2)
            yield [*row, str(number), *empty, problem.sentence]
            return
        for mask, fills in enumerate(fills_of(answer), 1):
            for rank, fill in enumerate(fills, 1):
                cells = [_cell(fill.get(column)) for column in self._fill_columns]
                no_error = [""] * (len(self._own_columns) - len(_PLACES) - len(cells))
                yield [*row, str(number), str(mask), str(rank), *cells, *no_error]


def _columns_of(rows: Rows) -> tuple[str, ...]:
    """The rows' fields, in the order in which they are first seen."""
    if rows.columns is not None:
        return rows.columns
    found: dict[str, None] = {}
    for block in rows.blocks():
        for fields in block.fields():
            if not isinstance(fields, Unreadable):
                found |= dict.fromkeys(fields)
    return tuple(found)


def _of_fills(options: FillOptions) -> tuple[str, ...]:
    """What fills have beside what all have; it hangs on the options alone, so that shards agree."""
    columns = []
    if options.targets or options.granularity == "word" or options.strategy == "joint":
        columns += ["log_prob", "tokens"]
    if options.targets:
        columns.append("target_score")
    if options.strategy == "joint":
        columns.append("token_strs")
    if options.on_long_text == "window":
        columns.append("window")
    return tuple(column for column in _SOMETIMES if column in columns)


def _cell(value: Any) -> str:
    """A value as a cell: a text as it is, nothing as nothing, anything else as JSON has it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    written = as_json(value).decode()
    # what has no kind of its own in JSON, such as a date, is a text there
    return str(json.loads(written)) if written.startswith('"') else written
