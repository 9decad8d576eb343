"""Durable files, which are complete or absent even after a crash."""

import contextlib
import gzip
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


STANDARD_OUTPUT = "standard output"


@contextlib.contextmanager
def name_in_errors(name: str) -> Iterator[None]:
    """Add a file's name to system errors that name no file, such as the error of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = name
        raise


class _NamedFile(io.FileIO):
    """A file whose errors contain its name."""

    def __init__(self, path: Path, mode: str) -> None:
        super().__init__(path, mode)
        self._path = str(path)

    def write(self, content: "ReadableBuffer", /) -> int:
        with name_in_errors(self._path):
            return super().write(content)

    def close(self) -> None:
        with name_in_errors(self._path):
            super().close()


def create(path: Path, mode: str = "w") -> BinaryIO:
    """Create a file or, with the mode "a", extend it. Its errors contain its name."""
    return io.BufferedWriter(_NamedFile(path, mode))


def sync(stream: IO[Any], path: Path) -> None:
    """Flush a file to the disk."""
    with name_in_errors(str(path)):
        stream.flush()
        os.fsync(stream.fileno())


@contextlib.contextmanager
def write_file(path: Path, *, compressed: bool = False) -> Iterator[BinaryIO]:
    """Open a new file. The end of the `with` block flushes it to the disk."""
    with create(path) as file:
        if compressed:
            # without a name and a time, so that equal content is equal
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as stream:
                yield cast("BinaryIO", stream)
        else:
            yield file
        sync(file, path)


def replace_durably(source: Path, target: Path) -> None:
    """Replace the target with a flushed file and flush the directory of the target."""
    source.replace(target)
    sync_directory(target.parent)


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems cannot flush directories
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
