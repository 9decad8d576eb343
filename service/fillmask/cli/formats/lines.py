"""Readers of files with one row per line, such as plain text, with bounded memory."""

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fillmask.cli.formats.base import (
    Block,
    Fields,
    Format,
    ListBlock,
    Rows,
    UnreadableRow,
    drop_trailing_blanks,
    slice_batches,
)
from fillmask.tables.streams import ENCODE, MAX_LINE_BYTES, OpenStream, Stream, read_lines

_END = re.compile(rb"\r?\n?\Z")


@dataclass(frozen=True)
class LineBlock(ListBlock):
    """Block of lines without their line ends. An overlong line is None."""

    rows: Sequence[bytes | None]

    def fields(self) -> list[Fields | UnreadableRow]:
        """See `Block`."""
        return [
            UnreadableRow(f"The line is longer than {MAX_LINE_BYTES} bytes; shorten it.")
            if line is None
            else self._read(line, self.first + place)
            for place, line in enumerate(self.rows)
        ]

    @abstractmethod
    def _read(self, line: bytes, number: int) -> Fields | UnreadableRow:
        """Parse a line. `number` is the index of the line in the file."""


class LineRows(Rows):
    """Rows of a file with one row per line.

    Lines of only white space are blank. The reader ignores blank lines at the end of the file.

    Args:
        name: name of the file, for error messages.
        open_stream: function that opens the file at its start.
    """

    def __init__(self, name: str, open_stream: OpenStream) -> None:
        self.name = name
        self._open = open_stream

    def count(self) -> int:
        """See `Rows`."""
        with self._open() as stream:
            return sum(map(len, self._batches(stream)))

    def blocks(
        self,
        start: int = 0,
        stop: int | None = None,
        only: Sequence[str] | None = None,  # noqa: ARG002 - the parser reads all fields
    ) -> Iterator[Block]:
        """See `Rows`."""
        with self._open() as stream:
            for first, lines in slice_batches(self._batches(stream), start, stop):
                yield self._block(first, lines)

    def _batches(self, stream: Stream) -> Iterator[Sequence[bytes | None]]:
        batches = (
            [line and (b"" if line.isspace() else _END.sub(b"", line)) for line in lines]
            for lines in read_lines(stream)
        )
        return drop_trailing_blanks(batches, b"")

    @abstractmethod
    def _block(self, first: int, lines: Sequence[bytes | None]) -> Block: ...


@dataclass(frozen=True)
class TextBlock(LineBlock):
    """Block of plain-text lines."""

    field: str

    def _read(self, line: bytes, number: int) -> Fields | UnreadableRow:  # noqa: ARG002 - for JSON errors
        try:
            return {self.field: line.decode()}
        except UnicodeDecodeError:
            return UnreadableRow(f"The line {ENCODE}.")


class TextRows(LineRows):
    """Rows of a plain-text file.

    Args:
        field: name for the field of the texts.
    """

    row_parameters = False

    def __init__(self, name: str, open_stream: OpenStream, field: str) -> None:
        super().__init__(name, open_stream)
        self.columns = (field,)
        self._field = field

    def _block(self, first: int, lines: Sequence[bytes | None]) -> Block:
        return TextBlock(first, lines, self._field)


TEXT = Format((".txt",), lambda source: TextRows(source.name, source.open, source.field))
