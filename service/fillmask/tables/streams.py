"""Text files of any compression, encoding and line ends, as streams of UTF-8 in bounded memory."""

import codecs
import gzip
import io
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# 80 bytes per character of the longest text that the model reads in windows
MAX_LINE_BYTES = 2**24
_CHUNK_BYTES = 2**18
_MARKED = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark begins it
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_FOREIGN = {
    b"PK\x03\x04": "a ZIP archive or an Excel workbook; save its table as .csv",
    b"\xd0\xcf\x11\xe0": "an Excel workbook; save its table as .csv",
    b"PAR1": "a Parquet file; name it .parquet",
}
INVALID = "is not valid in its encoding"
SET_ENCODING = "encode it as UTF-8, or set --encoding to its encoding, such as cp1252"
ENCODE = f"is not valid UTF-8; {SET_ENCODING}"


class TableError(ValueError):
    """Error for a file that nobody can read, with a message for the user."""


class Stream(Protocol):
    """Binary file."""

    def read(self, size: int, /) -> bytes | None:
        """Read the available bytes, up to `size`. The result is empty at the end of the file."""


OpenStream = Callable[[], AbstractContextManager[Stream]]


# the largest window, of zstd --long=31
_ZSTD_OPTIONS = {zstd.DecompressionParameter.window_log_max: 31}

# functions that open a compressed file, by the start of its content and the end of its name
_COMPRESSIONS: dict[str, tuple[re.Pattern[bytes], Callable[[Path], Any]]] = {
    ".gz": (re.compile(rb"\x1f\x8b"), gzip.open),
    ".zst": (
        re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
        partial(zstd.open, options=_ZSTD_OPTIONS),
    ),
    ".xz": (re.compile(rb"\xfd7zXZ\x00"), lzma.open),
}
COMPRESSIONS = tuple(_COMPRESSIONS)
GZIP = COMPRESSIONS[0]


def suffix_of(path: Path) -> str:
    """Return the end of a file's name in lower case, without that of a compression."""
    name = Path(path.name.lower())
    return (name.with_suffix("") if name.suffix in COMPRESSIONS else name).suffix


@contextmanager
def open_text(path: Path, encoding: str | None = None) -> Iterator[Stream]:
    """Open a text file as UTF-8. Lone carriage returns become line feeds if they end its lines.

    The content tells the compression, because names are often wrong, and without an `encoding` the
    byte order mark tells it.

    Raises:
        TableError: the file is not a text file, or a read finds that it is damaged.
    """
    with path.open("rb") as file:
        start = file.read(8)
    for magic, kind in _FOREIGN.items():
        if start.startswith(magic):
            raise TableError(f"{path.name} is {kind}.")
    openers = [opener for magic, opener in _COMPRESSIONS.values() if magic.match(start)]
    try:
        with io.BufferedReader(
            openers[0](path) if openers else path.open("rb", 0), _CHUNK_BYTES
        ) as stream:
            yield _as_utf8(path.name, stream, encoding)
    except UnicodeError as error:
        raise TableError(f"{path.name} {INVALID} ({error}); {SET_ENCODING}.") from error
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise TableError(f"{path.name} is damaged ({error}); create the file again.") from error


def _as_utf8(name: str, stream: io.BufferedReader, encoding: str | None) -> Stream:
    head = stream.peek(1)
    if encoding is None:
        encoding = next((one for mark, one in _MARKED.items() if head.startswith(mark)), "utf-8")
        if encoding == "utf-8" and b"\0" in head.partition(b"\n")[0]:
            raise TableError(
                f"{name}, line 1 has a NUL byte, as in UTF-16 without a byte order mark; set "
                "--encoding to utf-16-le or utf-16-be, or remove the byte."
            )
    text = head.decode(encoding, "ignore")
    lone_returns = "\r" in text[:-1] and "\n" not in text
    if codecs.lookup(encoding).name in {"utf-8", "utf-8-sig"} and not lone_returns:
        return stream
    return _Recoded(stream, encoding, "surrogateescape", None if lone_returns else "")


class _Recoded(io.TextIOWrapper):
    """Text as UTF-8. Bytes without a meaning stay, so that the error can name their row."""

    def read(self, size: int, /) -> bytes:  # type: ignore[override]
        return super().read(size).encode(errors="surrogateescape")


def read_lines(stream: Stream, max_bytes: int = MAX_LINE_BYTES) -> Iterator[list[bytes | None]]:
    """Yield lists of the lines of a stream, with the line feeds at their ends.

    A line longer than `max_bytes` becomes None. A byte order mark at the start is removed. Lines of
    a slow stream do not wait for later lines.
    """
    pieces: list[bytes] = []  # pieces of the incomplete line
    held_bytes = 0
    at_start = True
    while chunk := stream.read(_CHUNK_BYTES):
        *ends, rest = chunk.split(b"\n")
        lines: list[bytes | None] = []
        for end in ends:
            too_long = held_bytes + len(end) > max_bytes
            lines.append(None if too_long else b"".join([*pieces, end, b"\n"]))
            pieces, held_bytes = [], 0
        held_bytes += len(rest)
        pieces = [*pieces, rest] if held_bytes <= max_bytes else []
        if lines:
            yield _without_mark(lines) if at_start else lines
            at_start = False
    if held_bytes and not (at_start and b"".join(pieces) == codecs.BOM_UTF8):
        lines = [None if held_bytes > max_bytes else b"".join(pieces)]
        yield _without_mark(lines) if at_start else lines


def _without_mark(lines: list[bytes | None]) -> list[bytes | None]:
    first, *others = lines
    return [first and first.removeprefix(codecs.BOM_UTF8), *others]
