"""Helpers to read text and JSON files and to replace files atomically."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def read_text(path: Path) -> str:
    """Read a UTF-8 file.

    Raises:
        ValueError: the file does not exist or is not UTF-8.
    """
    try:
        return path.read_bytes().decode()  # Path.read_text changes line endings
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist; add the file") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not valid UTF-8 ({error}); encode it as UTF-8") from None


def read_object(path: Path) -> dict[str, Any]:
    """Read the object in a JSON file.

    Raises:
        ValueError: the file does not exist, is not JSON, or does not contain an object.
    """
    text = read_text(path)
    try:
        fields = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not valid JSON ({error}); correct the syntax") from None
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply; use fewer levels") from None
    except ValueError:  # of int(), for a number
        most = sys.get_int_max_str_digits()
        raise ValueError(f"{path} has a number with too many digits; use at most {most}") from None
    if not isinstance(fields, dict):
        raise ValueError(f"{path} must contain a JSON object (got {type(fields).__name__})")  # noqa: TRY004 - an invalid file is a ValueError
    return fields


@contextmanager
def atomic_replace(path: Path) -> Iterator[Path]:
    """Replace a file atomically by a temporary file at the yielded path.

    The function syncs the temporary file to disk before the rename to `path`. The old file
    therefore survives an error, a killed process and a power failure.
    """
    temporary = _create_beside(path)
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _create_beside(path: Path) -> Path:
    """Create an empty file with a new name beside a path and return its path."""
    created, number = path.with_name(f"{path.name}.tmp"), 0
    while True:
        try:
            created.open("x").close()
        except FileExistsError:  # it may be the user's
            number += 1
            created = path.with_name(f"{path.name}.{number}.tmp")
        else:
            return created


def _sync(path: Path) -> None:
    """Flush a file or a directory to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
