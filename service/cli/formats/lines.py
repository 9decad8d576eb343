"""Bytes to lines, as they come, in bounded memory."""

import codecs
from collections.abc import Iterator
from typing import Protocol

# 80 times the longest text that is read in windows
MAX_LINE_BYTES = 2**24
_CHUNK_BYTES = 2**18


class Stream(Protocol):
    """Where bytes come from: a file that is not buffered."""

    def read(self, size: int, /) -> bytes | None:
        """What is there, at most so much; empty at the end."""


def read_lines(stream: Stream, max_bytes: int = MAX_LINE_BYTES) -> Iterator[list[bytes | None]]:
    """The lines of a stream without their ends, several at a time.

    A line ends with a line feed, or a carriage return and a line feed; the last one need not. A
    byte order mark at the start is no part of the first.

    Args:
        stream: read as far as it has something, so that what comes slowly is not waited for.
        max_bytes: longest line; in place of a longer one there is None.
    """
    pieces: list[bytes] = []  # of a line that has not ended
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
