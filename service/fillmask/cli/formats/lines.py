"""Reader of the lines of a byte stream, with bounded memory."""

import codecs
from collections.abc import Iterator
from typing import Protocol

# 80 bytes per character of the longest text that the model reads in windows
MAX_LINE_BYTES = 2**24
_CHUNK_BYTES = 2**18


class Stream(Protocol):
    """Unbuffered binary file."""

    def read(self, size: int, /) -> bytes | None:
        """Read the available bytes, up to `size`. The result is empty at the end of the file."""


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
