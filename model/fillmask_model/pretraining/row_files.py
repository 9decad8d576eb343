"""Memory-mapped files of training rows and sentences.

A resumed run reads these files instead of tokenizing the corpus again. Token ids take two bytes in
a file without ids above 65,535. Rows of 150 million such ids take 300 MB of page cache, which Linux
can drop.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fillmask_model.files import atomic_replace, read_object
from fillmask_model.pretraining.rows import TokenRows

KEY_NAME = "key.json"
# every key has these fields, also the keys of earlier versions
_KEY_FIELDS = frozenset({"texts", "held_out", "tokenizer"})
_UNFINISHED = "unfinished"  # additional field of the key while the arrays are incomplete
# names of all arrays of model/fillmask_model/pretraining/texts.py
_ARRAY = r"(?:packed|short_\d{4,}|(?:training|held_out)\w*)\.npy"
_TEMPORARY = r"(?:\.\d+)?\.tmp"  # left by a killed process
_OWN_NAME = re.compile(rf"{_ARRAY}(?:{_TEMPORARY})?")
_KEY_DRAFT = re.compile(rf"{re.escape(KEY_NAME)}{_TEMPORARY}")
_TWO_BYTES = np.iinfo(np.uint16).max


def load_or_build_arrays(
    directory: Path, key: Mapping[str, Any], make: Callable[[], Mapping[str, TokenRows]]
) -> dict[str, TokenRows]:
    """Map a directory's arrays into memory by name, after building them if the key differs.

    Args:
        directory: directory of the arrays. New arrays replace arrays with another key. Other files
            in the directory stay.
        key: all inputs that determine the arrays, as a JSON object.
        make: function that creates the arrays. Arrays without a value above 65,535 become uint16.

    Raises:
        ValueError: the directory belongs to the user.
    """
    if read_key(directory) != key:
        reject_foreign_directory(directory)
        _write(directory, make(), key)
    return {path.stem: _map(path) for path in _own_files(directory) if path.suffix == ".npy"}


def reject_foreign_directory(directory: Path) -> None:
    """Reject a path at which arrays would replace something that is not from an earlier run.

    Raises:
        ValueError: the path is no directory, or the directory has files but no key of a run.
    """
    if not directory.exists() or has_arrays(directory):
        return
    # a process killed before its first key leaves an empty directory or the draft of a key
    if not directory.is_dir() or not all(_KEY_DRAFT.fullmatch(p.name) for p in directory.iterdir()):
        raise ValueError(
            f"{directory} exists and does not come from fillmask-train, which writes prepared text "
            "there; move it away or choose another --output"
        )


def has_arrays(directory: Path) -> bool:
    """Return whether a directory has arrays of a run, also incomplete arrays."""
    key = read_key(directory)
    return key is not None and key.keys() >= _KEY_FIELDS


def read_key(directory: Path) -> dict[str, Any] | None:
    """Return the key of a directory, or None for a directory without a valid key."""
    path = directory / KEY_NAME
    try:
        return read_object(path) if path.is_file() else None
    except ValueError:
        return None


def _own_files(directory: Path) -> list[Path]:
    return [path for path in directory.iterdir() if _OWN_NAME.fullmatch(path.name)]


def _write(directory: Path, arrays: Mapping[str, TokenRows], key: Mapping[str, Any]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    # this key marks the files as files of a run, but no run uses them
    _write_key(directory, {**key, _UNFINISHED: True})
    for path in _own_files(directory):
        path.unlink()
    for name, part in arrays.items():
        fits = part.size == 0 or part.max() <= _TWO_BYTES
        with atomic_replace(directory / f"{name}.npy") as temporary, temporary.open("wb") as stream:
            np.save(stream, part.astype(np.uint16) if fits else part)
    _write_key(directory, key)


def _write_key(directory: Path, key: Mapping[str, Any]) -> None:
    with atomic_replace(directory / KEY_NAME) as temporary:
        temporary.write_text(json.dumps(key, indent=2) + "\n", encoding="utf-8")


def _map(path: Path) -> TokenRows:
    rows: TokenRows = np.load(path, mmap_mode="r")
    return rows
