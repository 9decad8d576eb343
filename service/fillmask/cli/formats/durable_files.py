"""Durable files, which are complete or absent even after a crash."""

import contextlib
import gzip
import io
import json
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
    """A new file whose errors contain its name."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w")
        self._path = str(path)

    def write(self, content: "ReadableBuffer", /) -> int:
        with name_in_errors(self._path):
            return super().write(content)

    def close(self) -> None:
        with name_in_errors(self._path):
            super().close()


def create(path: Path) -> BinaryIO:
    """Create or truncate a file, whose errors contain its name."""
    return io.BufferedWriter(_NamedFile(path))


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
    descriptor = os.open(target.parent, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems cannot flush directories
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically."""
    draft = path.with_name(f"{path.name}.draft")
    with write_file(draft) as stream:
        stream.write(json.dumps(value, indent=2, ensure_ascii=False).encode())
    replace_durably(draft, path)
