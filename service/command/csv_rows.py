"""CSV: comma-separated, the first row names the columns (RFC 4180)."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TextIO

from service.command.errors import CommandError
from service.command.lines import MAX_LINE_BYTES
from service.command.rows import (
    BLOCK_ROWS,
    Block,
    Fields,
    ListBlock,
    Rows,
    Unreadable,
    cut,
    is_text,
    without_blank_end,
)
from service.errors import quote


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
