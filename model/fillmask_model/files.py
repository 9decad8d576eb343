"""Helpers to read text and JSON files and to replace files atomically."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# The largest known files are tokenizers of 35 MB.
MAX_TEXT_BYTES = 256 * 2**20
MAX_LISTED = 20  # names in one message
MAX_PRINTED_CHARS = 4_000
_LFS_START = b"version https://git-lfs.github.com/spec/"


def read_text(path: Path) -> str:
    """Read a UTF-8 file, without a byte order mark.

    Raises:
        ValueError: `check_file` rejects the file, or it is too large or not UTF-8.
    """
    check_file(path)
    if (size := path.stat().st_size) > MAX_TEXT_BYTES:
        raise ValueError(f"{path} must have at most {MAX_TEXT_BYTES >> 20} MiB (got {size} bytes)")
    try:
        return path.read_bytes().decode("utf-8-sig")  # Path.read_text changes line endings
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not valid UTF-8 ({error}); encode it as UTF-8") from None


def check_file(path: Path) -> None:
    """Check that a path leads to an ordinary file, because a pipe or a device may never end.

    Raises:
        ValueError: the file does not exist, is no ordinary file or is a pointer of Git LFS.
    """
    if not path.exists():
        raise ValueError(f"{path} does not exist; add the file")
    if not path.is_file():
        raise ValueError(f"{path} must be a file (got a directory, a pipe or a device)")
    with path.open("rb") as file:
        if file.read(len(_LFS_START)) == _LFS_START:
            raise ValueError(
                f"{path} is a Git LFS pointer instead of the file itself; run `git lfs pull`, or "
                "download the file again"
            )


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


def sha256_of(files: Iterable[Path]) -> str:
    """Return the SHA-256 over the SHA-256 digests of files."""
    together = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            together.update(hashlib.file_digest(stream, "sha256").digest())
    return together.hexdigest()


def printable(text: str) -> str:
    """Return a text with escapes for characters that could end a line or control a terminal.

    A text of more than MAX_PRINTED_CHARS characters loses its middle.
    """
    half = MAX_PRINTED_CHARS // 2
    shown = text if len(text) <= MAX_PRINTED_CHARS else f"{text[:half]} … {text[-half:]}"
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in shown)


def listed(names: Iterable[str]) -> str:
    """Return the first names of a list that may have thousands, and the number of the others."""
    first = list(names)
    rest = len(first) - MAX_LISTED
    return ", ".join(first[:MAX_LISTED]) + (f" and {rest} more" if rest > 0 else "")


@contextmanager
def atomic_replace(path: Path) -> Iterator[Path]:
    """Replace a file atomically by a temporary file at the yielded path.

    The function syncs the temporary file to disk before the rename to `path`. The old file
    therefore survives an error, a killed process and a power failure.
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    temporary.open("x").close()  # an OSError here, and the permissions of any new file
    try:
        with naming_a_full_disk(path):
            yield temporary
            _sync(temporary)
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(path.parent)


@contextmanager
def naming_a_full_disk(output: Path) -> Iterator[None]:
    """Raise one error with the path of an output if the `with` block fills its disk.

    numpy's OSError then has no number, torch's error no reason, and safetensors' is no OSError.

    Raises:
        OSError: no space is left.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError):
            full = error.errno in {None, errno.ENOSPC, errno.EDQUOT}
        else:
            full = "No space left" in str(error) or not shutil.disk_usage(output.parent).free
        if not full:
            raise
        raise OSError(
            f"{output} cannot be written, because its disk is full; free some space, or choose "
            "another output"
        ) from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
