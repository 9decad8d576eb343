"""CSV and TSV."""

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from fillmask.cli.formats.base import Block, Row, Rows, Source, as_json, in_batches
from fillmask.cli.formats.output import ROW, Output, Write
from fillmask.cli.progress import print_status
from fillmask.tables.delimited import Record, Table

_ESCAPES = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


class CsvRows(Rows):
    """Rows of a CSV or TSV file.

    Raises:
        TableError: the file has no valid header.
    """

    hint = " Line 1 must name the columns; --delimiter sets what separates them."

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        [path] = source.files
        self._table = Table(path, self.name, source.dialect, source.field, print_status)
        self.columns: tuple[str, ...] = self._table.columns

    def batches(self, _only: Sequence[str] | None = None, /) -> Iterator[list[Record]]:
        return in_batches(self._table.records())

    def parse(self, item: Record, number: int) -> Row:  # noqa: ARG002 - the record has its line
        fields = dict(zip(self.columns, item.cells, strict=False))
        return Row(fields, item.problem and f"Line {item.line} {item.problem}.")


class CsvRowWriter:
    """Writer of rows as CSV, or as TSV.

    TSV has no quotation marks, so that every reader finds the same cells. Tabs and line ends
    become escapes.
    """

    def __init__(self, rows: Rows, output: Output, *, tabs: bool = False) -> None:
        self._columns = rows.find_columns()
        self._tabs = tabs
        self._has_noted_escapes = False
        self._layout = output.layout
        self._added = output.names(rows, output.layout.cells)

    @contextmanager
    def write_to(self, stream: BinaryIO) -> Iterator[Write]:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        # csv.writer does not quote a carriage return that is not part of its line ends
        writers = [
            csv.writer(text, lineterminator="\n", quoting=quoting)
            for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
        ]

        def write_line(cells: Sequence[str]) -> None:
            if self._tabs:
                text.write("\t".join(cells) + "\n")
            else:
                writers["\r" in "".join(cells)].writerow(cells)

        def write(block: Block, answers: Sequence[bytes]) -> None:
            pairs = zip(block.rows(), answers, strict=True)
            for number, (row, answer) in enumerate(pairs, block.first + 1):
                for line in self._lines(number, row, answer):
                    write_line(line)

        write_line([self._cell(name, 0) for name in (*self._columns, *self._added.values())])
        yield write
        text.detach()

    def _lines(self, number: int, row: Row, answer: bytes) -> Iterator[list[str]]:
        cells = [self._cell(row.fields.get(column), number) for column in self._columns]
        for result in self._layout.lines(answer):
            values = {ROW: number, **result}
            yield [*cells, *(self._cell(values.get(column), number) for column in self._added)]

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
    """Format a value as a cell: nothing for None, a string as it is, and others as JSON.

    Values of types that JSON lacks, such as dates, are strings in JSON, and here without quotes.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    written = as_json(value).decode()
    return str(json.loads(written)) if written.startswith('"') else written
