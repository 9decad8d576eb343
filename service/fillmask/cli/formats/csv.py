"""Reader and writer of CSV and TSV, with added columns for the results."""

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from fillmask.cli.formats.answers import parse_problem
from fillmask.cli.formats.base import (
    BLOCK_ROWS,
    ERROR,
    Block,
    Fields,
    Format,
    ListBlock,
    OutputOptions,
    Rows,
    Source,
    UnreadableRow,
    Write,
    as_json,
    slice_batches,
)
from fillmask.cli.formats.csv_layout import LAYOUTS, ROW
from fillmask.cli.formats.durable_files import write_file
from fillmask.cli.progress import print_status
from fillmask.tables.delimited import Record, Table

_ESCAPES = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


class CsvBlock(ListBlock):
    """Block of CSV rows with their fields."""

    def fields(self) -> list[Fields | UnreadableRow]:
        """See `Block`."""
        return list(self.rows)


class CsvRows(Rows):
    """Rows of a CSV or TSV file.

    Raises:
        TableError: the file has no valid header.
    """

    row_parameters = False
    hint = " Line 1 must name the columns; --delimiter sets what separates them."

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self._table = Table(source.path, self.name, source.dialect, source.field, print_status)
        self.columns: tuple[str, ...] = self._table.columns

    def count(self) -> int:
        """See `Rows`."""
        return sum(1 for _ in self._table.records())

    def blocks(
        self,
        start: int = 0,
        stop: int | None = None,
        only: Sequence[str] | None = None,  # noqa: ARG002 - the parser reads all fields
    ) -> Iterator[Block]:
        """See `Rows`."""
        rows = map(self._read, self._table.records())
        batches = iter(lambda: list(islice(rows, BLOCK_ROWS)), [])
        for first, batch in slice_batches(batches, start, stop):
            yield CsvBlock(first, batch)

    def _read(self, row: Record) -> Fields | UnreadableRow:
        fields = dict(zip(self.columns, row.cells, strict=False))
        if row.problem is None:
            return fields
        return UnreadableRow(f"Line {row.line} {row.problem}.", fields)


class CsvRowWriter:
    """Writer of rows as CSV or TSV, with added columns for the results.

    TSV has no quotation marks, so that every reader finds the same cells. Tabs and line ends
    become escapes.

    Args:
        rows: the rows to write. If the rows may have different fields, the writer first reads all
            rows to find the columns.
    """

    def __init__(self, rows: Rows, options: OutputOptions, *, tabs: bool = False) -> None:
        self._columns = rows.find_columns()
        self._tabs = tabs
        self._has_noted_escapes = False
        self._compressed = options.compressed
        self._layout = LAYOUTS[options.task.name]
        added = self._layout.columns(options.task_options, rows.row_parameters)
        self._added = options.names(rows, added)

    @contextmanager
    def open(self, path: Path) -> Iterator[Write]:
        """See `RowWriter`."""
        with write_file(path, compressed=self._compressed) as file:
            stream = io.TextIOWrapper(file, encoding="utf-8", newline="")
            # csv.writer does not quote a carriage return that is not part of its line ends
            writers = [
                csv.writer(stream, lineterminator="\n", quoting=quoting)
                for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
            ]

            def write_line(cells: Sequence[str]) -> None:
                if self._tabs:
                    stream.write("\t".join(cells) + "\n")
                else:
                    writers["\r" in "".join(cells)].writerow(cells)

            write_line([self._cell(name, 0) for name in (*self._columns, *self._added.values())])

            def write(block: Block, answers: Sequence[bytes]) -> None:
                pairs = zip(block.known_fields(), answers, strict=True)
                for number, (fields, answer) in enumerate(pairs, block.first + 1):
                    for line in self._lines(number, fields, answer):
                        write_line(line)

            yield write
            stream.detach()

    def _lines(self, number: int, fields: Fields, answer: bytes) -> Iterator[list[str]]:
        problem = parse_problem(answer)
        row = [self._cell(fields.get(column), number) for column in self._columns]
        results = [{ERROR: problem.message}] if problem else self._layout.lines(answer)
        for result in results:
            values = {ROW: number, **result}
            yield [*row, *(self._cell(values.get(column), number) for column in self._added)]

    def _cell(self, value: Any, number: int) -> str:
        cell = _text(value)
        if self._tabs and re.search(r"[\t\n\r]", cell):
            if not self._has_noted_escapes:
                self._has_noted_escapes = True
                print_status(
                    rf"Cells of TSV have no tabs and line ends; they become \t, \n and \r from row "
                    f"{number} on. Write .csv or .jsonl to keep them."
                )
            cell = re.sub(r"[\t\n\r]", lambda found: _ESCAPES[found[0]], cell)
        return cell


def _text(value: Any) -> str:
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


CSV = Format((".csv",), CsvRows, CsvRowWriter, dialect=True)
TSV = Format((".tsv",), CsvRows, lambda *given: CsvRowWriter(*given, tabs=True), dialect=True)
