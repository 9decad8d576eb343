"""Readers of files with one row per line, with bounded memory."""

import codecs
import io
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from fillmask.cli.formats.base import (
    Block,
    Fields,
    ListBlock,
    Rows,
    UnreadableRow,
    drop_trailing_blanks,
    slice_batches,
)

# 80 bytes per character of the longest text that the model reads in windows
MAX_LINE_BYTES = 2**24
_CHUNK_BYTES = 2**18


class Stream(Protocol):
    """Unbuffered binary file."""

    def read(self, size: int, /) -> bytes | None:
        """Read the available bytes, up to `size`. The result is empty at the end of the file."""


OpenStream = Callable[[], AbstractContextManager[io.RawIOBase]]


def read_lines(stream: Stream, max_bytes: int = MAX_LINE_BYTES) -> Iterator[list[bytes | None]]:
    """Yield lists of the lines of a stream, without line ends.

    A line ends with a line feed, or with a carriage return and a line feed. The last line may have
    no line end. The function removes a byte order mark at the start.

    Args:
        stream: stream to read. The function reads the available bytes, so that lines of a slow
            stream do not wait for later lines.
        max_bytes: maximum length of a line, in bytes. A longer line becomes None.
    """
    pieces: list[bytes] = []  # pieces of the incomplete line
    held_bytes = 0
    at_start = True
    while chunk := stream.read(_CHUNK_BYTES):
        *ends, rest = chunk.split(b"\n")
        lines: list[bytes | None] = []
        for end in ends:
            too_long = held_bytes + len(end) > max_bytes
            lines.append(None if too_long else _line([*pieces, end]))
            pieces, held_bytes = [], 0
        held_bytes += len(rest)
        pieces = [*pieces, rest] if held_bytes <= max_bytes else []
        if lines:
            yield _without_mark(lines) if at_start else lines
            at_start = False
    if held_bytes and not (at_start and b"".join(pieces) == codecs.BOM_UTF8):
        lines = [None if held_bytes > max_bytes else _line(pieces)]
        yield _without_mark(lines) if at_start else lines


def _line(pieces: list[bytes]) -> bytes:
    return b"".join(pieces).removesuffix(b"\r")


def _without_mark(lines: list[bytes | None]) -> list[bytes | None]:
    first, *others = lines
    return [first and first.removeprefix(codecs.BOM_UTF8), *others]


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
            [b"" if line is not None and line.isspace() else line for line in lines]
            for lines in read_lines(stream)
        )
        return drop_trailing_blanks(batches, b"")

    @abstractmethod
    def _block(self, first: int, lines: Sequence[bytes | None]) -> Block: ...
