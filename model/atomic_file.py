"""Files that are whole or absent, also after a crash."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
