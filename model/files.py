"""JSON files of other people, and files that are whole or absent, also after a crash."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def read_text(path: Path) -> str:
    """The text of a UTF-8 file.

    Raises:
        ValueError: the file does not exist or is not UTF-8.
    """
    try:
        return path.read_bytes().decode()  # read_text would change line ends
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error}") from None


def read_object(path: Path) -> dict[str, Any]:
    """The object a JSON file holds.

    Raises:
        ValueError: the file does not exist, is not JSON, or holds something else.
    """
    try:
        fields = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError(f"{path} must hold a JSON object")  # noqa: TRY004 - the file's value is wrong
    return fields


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name to write, then put that file in the place of path.

    The content reaches the disk before the name does, so a process killed at any moment leaves the
    file from before, and so does a machine that loses power. After an error nothing is replaced.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        yield temporary
        _sync(temporary)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    temporary.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
