"""Training rows on disk, mapped into memory, so that a resumed run tokenizes nothing.

Token ids take two bytes where the vocabulary allows it: rows of 150 million tokens are 300 MB that
Linux reads and forgets as it likes.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from model.data.corpus import TokenRows
from model.files import replacing

KEY_NAME = "key.json"
_TWO_BYTES = np.iinfo(np.uint16).max


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """Rows that a run reads.

    Attributes:
        packed: (rows, row_tokens) to train on.
        held_out: (rows, row_tokens) to evaluate on.
        short: (N, T) short texts by their T; empty where a run has none.
    """

    packed: TokenRows
    held_out: TokenRows
    short: Mapping[int, TokenRows]


def stored_rows(
    directory: Path, key: Mapping[str, Any], make: Callable[[], TrainingRows]
) -> TrainingRows:
    """Map the rows that a directory holds, after making them where it has none for this key.

    Args:
        directory: of the rows alone; rows of another key are replaced.
        key: everything the rows depend on, as JSON.
        make: tokenizes the text.
    """
    if not _is_for(directory, key):
        shutil.rmtree(directory, ignore_errors=True)
        _write(directory, make())
        # written last: without it the other files count for nothing
        with replacing(directory / KEY_NAME) as temporary:
            temporary.write_text(json.dumps(key, indent=2) + "\n", encoding="utf-8")
    short = sorted(directory.glob("short_*.npy"))
    return TrainingRows(
        packed=_map(directory / "packed.npy"),
        held_out=_map(directory / "held_out.npy"),
        short={rows.shape[1]: rows for rows in map(_map, short)},
    )


def digest(files: Iterable[Path]) -> str:
    """SHA-256 of the files' contents, one after the other."""
    together = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            together.update(hashlib.file_digest(stream, "sha256").digest())
    return together.hexdigest()


def _is_for(directory: Path, key: Mapping[str, Any]) -> bool:
    path = directory / KEY_NAME
    return path.is_file() and json.loads(path.read_text(encoding="utf-8")) == key


def _write(directory: Path, rows: TrainingRows) -> None:
    directory.mkdir(parents=True)
    named = {"packed": rows.packed, "held_out": rows.held_out}
    named |= {f"short_{tokens:04}": part for tokens, part in rows.short.items()}
    for name, part in named.items():
        fits = part.size == 0 or part.max() <= _TWO_BYTES
        with replacing(directory / f"{name}.npy") as temporary, temporary.open("wb") as stream:
            np.save(stream, part.astype(np.uint16) if fits else part)


def _map(path: Path) -> TokenRows:
    rows: TokenRows = np.load(path, mmap_mode="r")
    return rows
