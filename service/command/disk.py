"""Files that are whole or not there, whenever the process or the machine ends."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any


def sync_directory(path: Path) -> None:
    """Have the names in a directory on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # there are network file systems that refuse
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def put(source: Path, target: Path) -> None:
    """Give a file that is on the disk another name, in place of what has that name."""
    source.replace(target)
    sync_directory(target.parent)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, whole or not at all."""
    draft = path.with_name(f"{path.name}.draft")
    with draft.open("w", encoding="utf-8") as stream:
        json.dump(value, stream, indent=2, ensure_ascii=False)
        stream.flush()
        os.fsync(stream.fileno())
    put(draft, path)
