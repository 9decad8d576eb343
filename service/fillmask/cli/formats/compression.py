"""Compressed files, which are read as streams in bounded memory.

pyarrow reads zstd. The extra parquet installs it anyway, so that zstd needs no package of its own.
"""

import gzip
import io
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.lines import OpenStream


class _Decompressed(io.RawIOBase):
    """Decompressed content of a file, whose damage is a CommandError."""

    def __init__(self, name: str, stream: Any) -> None:
        self._name = name
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            content = self._stream.read(len(buffer))
        except (OSError, EOFError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise CommandError(
                f"{self._name} is damaged ({error}); create the file again."
            ) from error
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _zstd() -> Callable[[Path], Any]:
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    return lambda path: pa.input_stream(path, compression="zstd")


# functions that return a function that opens a compressed file, by the end of the file's name
_OPENERS: dict[str, Callable[[], Callable[[Path], Any]]] = {
    ".gz": lambda: gzip.open,
    ".zst": _zstd,
}
COMPRESSIONS = tuple(_OPENERS)


def opener(path: Path) -> OpenStream:
    """Return a function that opens a file at its start, decompressed if its name says so.

    Raises:
        ModuleNotFoundError: pyarrow is not installed, and the name ends in .zst.
    """
    if (compression := _OPENERS.get(path.suffix.lower())) is None:
        return lambda: path.open("rb", buffering=0)
    open_compressed = compression()
    return lambda: closing(_Decompressed(path.name, open_compressed(path)))
