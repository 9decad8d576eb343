"""Reader and writer of CSV and TSV, with added columns for the results."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.answers import parse_problem
from fillmask.cli.formats.base import (
    BLOCK_ROWS,
    ERROR,
    Block,
    Fields,
    ListBlock,
    OutputOptions,
    Rows,
    UnreadableRow,
    Write,
    as_json,
    drop_trailing_blanks,
    is_encodable,
    reject_name_clash,
    slice_batches,
)
from fillmask.cli.formats.csv_layout import LAYOUTS, ROW
from fillmask.cli.formats.durable_files import create, sync
from fillmask.cli.formats.format import Format
from fillmask.cli.formats.lines import MAX_LINE_BYTES, OpenStream
from fillmask.errors import quote


@dataclass(frozen=True)
class CsvBlock(ListBlock):
    """Block of CSV rows, each a list of cells.

    Attributes:
        columns: names of the columns, from the header.
    """

    rows: Sequence[list[str]]
    columns: tuple[str, ...]

    def fields(self) -> list[Fields | UnreadableRow]:
        """See `Block`."""
        return [self._read(cells) for cells in self.rows]

    def _read(self, cells: list[str]) -> Fields | UnreadableRow:
        if len(cells) != len(self.columns):
            return UnreadableRow(
                f"The row must have as many cells as the header, {len(self.columns)} "
                f"(got {len(cells)})."
            )
        if not all(map(is_encodable, cells)):
            return UnreadableRow("The row is not valid UTF-8; encode it as UTF-8.")
        return dict(zip(self.columns, cells, strict=True))


class CsvRows(Rows):
    """Rows of a CSV file without the blank lines at its end.

    Args:
        name: name of the file, for error messages.
        open_stream: function that opens the file at its start.

    Raises:
        CommandError: the file has no valid header.
    """

    row_parameters = False

    def __init__(self, name: str, open_stream: OpenStream, delimiter: str = ",") -> None:
        self.name = name
        self._open = open_stream
        self._delimiter = delimiter
        header = next(self._cells(), None)
        if header is None:
            raise CommandError(f"{self.name} is empty; its first row must name the columns.")
        if not all(map(is_encodable, header)):
            raise CommandError(
                f"{self.name}: the first row is not valid UTF-8; encode it as UTF-8."
            )
        for place, column in enumerate(header):
            if column in header[:place]:
                raise CommandError(f"{self.name} has two columns {quote(column)}; rename one.")
        self.columns: tuple[str, ...] = tuple(header)

    def count(self) -> int:
        """See `Rows`."""
        return sum(map(len, self._batches()))

    def blocks(
        self,
        start: int = 0,
        stop: int | None = None,
        only: Sequence[str] | None = None,  # noqa: ARG002 - the parser reads all fields
    ) -> Iterator[Block]:
        """See `Rows`."""
        for first, rows in slice_batches(self._batches(), start, stop):
            yield CsvBlock(first, rows, self.columns)

    def _batches(self) -> Iterator[list[list[str]]]:
        rows = (
            [] if len(cells) == 1 and cells[0].isspace() else cells
            for cells in islice(self._cells(), 1, None)
        )
        batches = iter(lambda: list(islice(rows, BLOCK_ROWS)), [])
        return drop_trailing_blanks(batches, [])

    def _cells(self) -> Iterator[list[str]]:
        # The limit bounds memory, because an unclosed quote makes the rest of the file one cell.
        csv.field_size_limit(MAX_LINE_BYTES)
        # invalid bytes become surrogates, so that the error can name their row
        with (
            self._open() as raw,
            io.TextIOWrapper(
                io.BufferedReader(raw), encoding="utf-8-sig", errors="surrogateescape", newline=""
            ) as stream,
        ):
            reader = csv.reader(self._lines(stream), strict=True, delimiter=self._delimiter)
            try:
                yield from reader
            except csv.Error as error:
                raise CommandError(
                    f"{self.name}, line {reader.line_num} is not valid CSV ({error}); correct the "
                    "syntax."
                ) from error

    def _lines(self, stream: TextIO) -> Iterator[str]:
        """Read lines in bounded memory and reject overlong lines."""
        number = 0
        while line := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES and not line.endswith("\n"):
                raise CommandError(
                    f"{self.name}, line {number} is longer than {MAX_LINE_BYTES} characters; "
                    "shorten it."
                )
            yield line


class CsvRowWriter:
    """Writer of rows as CSV, with added columns for the results.

    Args:
        rows: the rows to write. If the rows may have different fields, the writer first reads all
            rows to find the columns.

    Raises:
        CommandError: the rows have a field with the name of an added column.
    """

    def __init__(self, rows: Rows, options: OutputOptions, delimiter: str = ",") -> None:
        columns = _columns_of(rows)
        self._delimiter = delimiter
        self._layout = LAYOUTS[options.task.name]
        added = self._layout.columns(options.task_options, rows.row_parameters)
        self._added_columns = options.with_error(added)
        reports_rows = rows.columns is None and options.report_errors
        self.reserved = self._added_columns if reports_rows else ()
        if not self.reserved:
            reject_name_clash(rows.name, columns, self._added_columns)
        self._columns = tuple(column for column in columns if column not in self.reserved)

    @contextmanager
    def open(self, path: Path) -> Iterator[Write]:
        """See `RowWriter`."""
        with io.TextIOWrapper(create(path), encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, delimiter=self._delimiter, lineterminator="\n")
            writer.writerow((*self._columns, *self._added_columns))

            def write(block: Block, answers: Sequence[bytes]) -> None:
                pairs = zip(block.fields(), answers, strict=True)
                for number, (fields, answer) in enumerate(pairs, block.first + 1):
                    writer.writerows(self._lines(number, fields, answer))

            yield write
            sync(stream, path)

    def _lines(
        self, number: int, fields: Fields | UnreadableRow, answer: bytes
    ) -> Iterator[list[str]]:
        problem = parse_problem(answer)
        readable = problem is None or problem.readable
        known = {} if isinstance(fields, UnreadableRow) or not readable else fields
        row = [_cell(known.get(column)) for column in self._columns]
        results = [{ERROR: problem.message}] if problem else self._layout.lines(answer)
        for result in results:
            values = {ROW: number, **result}
            yield [*row, *(_cell(values.get(column)) for column in self._added_columns)]


def _columns_of(rows: Rows) -> tuple[str, ...]:
    """Return the names of all fields of the rows, in order of first appearance."""
    if rows.columns is not None:
        return rows.columns
    found: dict[str, None] = {}
    for block in rows.blocks():
        for fields in block.fields():
            if not isinstance(fields, UnreadableRow):
                found |= dict.fromkeys(fields)
    return tuple(found)


def _cell(value: Any) -> str:
    """Format a value as a cell.

    A string stays unchanged. None becomes an empty cell. Any other value becomes JSON, without the
    quotes of a JSON string.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    written = as_json(value).decode()
    # Values of types that JSON lacks, such as dates, become JSON strings. The cell has no quotes.
    return str(json.loads(written)) if written.startswith('"') else written


CSV = Format((".csv",), lambda source: CsvRows(source.name, source.open), CsvRowWriter)
TSV = Format(
    (".tsv",),
    lambda source: CsvRows(source.name, source.open, "\t"),
    lambda rows, options: CsvRowWriter(rows, options, "\t"),
)
