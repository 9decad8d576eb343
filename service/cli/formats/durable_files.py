"""Files that are whole or not there, whenever the process or the machine ends."""

import contextlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


STANDARD_OUTPUT = "standard output"


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """Name the file in errors of the system that do not, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = name
        raise


class _NamedFile(io.FileIO):
    """A new file whose errors name it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w")
        self._path = str(path)

    def write(self, content: "ReadableBuffer", /) -> int:
        with naming(self._path):
            return super().write(content)

    def close(self) -> None:
        with naming(self._path):
            super().close()


def create(path: Path) -> BinaryIO:
    """Open a new file for writing, in place of one of the same name; its errors name it."""
    return io.BufferedWriter(_NamedFile(path))


def sync(stream: IO[Any], path: Path) -> None:
    """Have what was written to a file on the disk."""
    with naming(str(path)):
        stream.flush()
        os.fsync(stream.fileno())


def sync_directory(path: Path) -> None:
    """Have the names in a directory on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # there are network file systems that refuse
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_durably(source: Path, target: Path) -> None:
    """Give a file that is on the disk another name, in place of what has that name."""
    source.replace(target)
    sync_directory(target.parent)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, whole or not at all."""
    draft = path.with_name(f"{path.name}.draft")
    with create(draft) as stream:
        stream.write(json.dumps(value, indent=2, ensure_ascii=False).encode())
        sync(stream, draft)
    replace_durably(draft, path)
