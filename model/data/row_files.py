"""Memory-mapped files of training rows and sentences.

A resumed run reads these files instead of tokenizing the corpus again. Token ids take two bytes in
a file without ids above 65,535. Rows of 150 million such ids take 300 MB of page cache, which Linux
can drop.
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
from model.files import atomic_replace

KEY_NAME = "key.json"
_TWO_BYTES = np.iinfo(np.uint16).max


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """Rows of a training run.

    Attributes:
        packed: (rows, row_tokens) rows for training.
        held_out: (rows, row_tokens) rows for evaluation.
        short: (N, T) short texts by T, possibly none.
    """

    packed: TokenRows
    held_out: TokenRows
    short: Mapping[int, TokenRows]


def load_or_build_rows(
    directory: Path, key: Mapping[str, Any], make: Callable[[], TrainingRows]
) -> TrainingRows:
    """Map a directory's rows into memory, after building the rows if the key differs.

    Args:
        directory: directory with only rows. New rows replace rows with another key.
        key: all inputs that determine the rows, as a JSON object.
    """

    def arrays() -> dict[str, TokenRows]:
        rows = make()
        short = {f"short_{tokens:04}": part for tokens, part in rows.short.items()}
        return {"packed": rows.packed, "held_out": rows.held_out} | short

    named = load_or_build_arrays(directory, key, arrays)
    short = [named[name] for name in sorted(named) if name.startswith("short_")]
    return TrainingRows(
        packed=named["packed"],
        held_out=named["held_out"],
        short={rows.shape[1]: rows for rows in short},
    )


def load_or_build_arrays(
    directory: Path, key: Mapping[str, Any], make: Callable[[], Mapping[str, TokenRows]]
) -> dict[str, TokenRows]:
    """Map a directory's arrays into memory by name, after building them if the key differs.

    Args:
        directory: directory with only these arrays. New arrays replace arrays with another key.
        key: all inputs that determine the arrays, as a JSON object.
        make: function that creates the arrays. Arrays without a value above 65,535 become uint16.
    """
    if not _has_key(directory, key):
        shutil.rmtree(directory, ignore_errors=True)
        _write(directory, make())
        # write the key last, because the loader ignores files without a key
        with atomic_replace(directory / KEY_NAME) as temporary:
            temporary.write_text(json.dumps(key, indent=2) + "\n", encoding="utf-8")
    return {path.stem: _map(path) for path in directory.glob("*.npy")}


def sha256_of(files: Iterable[Path]) -> str:
    """Return the SHA-256 over the SHA-256 digests of files."""
    together = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            together.update(hashlib.file_digest(stream, "sha256").digest())
    return together.hexdigest()


def _has_key(directory: Path, key: Mapping[str, Any]) -> bool:
    path = directory / KEY_NAME
    return path.is_file() and json.loads(path.read_text(encoding="utf-8")) == key


def _write(directory: Path, arrays: Mapping[str, TokenRows]) -> None:
    directory.mkdir(parents=True)
    for name, part in arrays.items():
        fits = part.size == 0 or part.max() <= _TWO_BYTES
        with atomic_replace(directory / f"{name}.npy") as temporary, temporary.open("wb") as stream:
            np.save(stream, part.astype(np.uint16) if fits else part)


def _map(path: Path) -> TokenRows:
    rows: TokenRows = np.load(path, mmap_mode="r")
    return rows
