"""Memory-mapped file of a run's training text as arrays.

A resumed run reads this file instead of tokenizing the corpus again. Token ids take two bytes in an
array without ids above 65,535. Rows of 150 million such ids take 300 MB of page cache, which Linux
can drop.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from fillmask_model.files import atomic_replace
from fillmask_model.pretraining.rows import TokenRows

# every key has these fields
_KEY_FIELDS = frozenset({"texts", "held_out", "tokenizer"})
_TWO_BYTES = np.iinfo(np.uint16).max


def load_or_build_arrays(
    path: Path, key: Mapping[str, Any], make: Callable[[], Mapping[str, TokenRows]]
) -> dict[str, TokenRows]:
    """Map a file's arrays into memory by name, after building them if the key differs.

    Args:
        path: .safetensors file of the arrays. New arrays replace arrays with another key.
        key: all inputs that determine the arrays, as a JSON object.
        make: function that creates the arrays. Arrays without a value above 65,535 become uint16.
    """
    if read_key(path) != key:
        arrays = {name: torch.from_numpy(_narrow(part)) for name, part in make().items()}
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_replace(path) as temporary:
            save_file(arrays, temporary, metadata={"key": json.dumps(key)})
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name).numpy() for name in file.keys()}  # noqa: SIM118 - safe_open is no dict


def read_key(path: Path) -> dict[str, Any] | None:
    """Return the key of a file, or None for a file that is not a run's."""
    try:
        with safe_open(path, framework="pt") as file:
            key = json.loads((file.metadata() or {})["key"])
    except (OSError, SafetensorError, KeyError, ValueError):
        return None
    return key if isinstance(key, dict) and key.keys() >= _KEY_FIELDS else None


def _narrow(part: TokenRows) -> TokenRows:
    fits = part.size == 0 or part.max() <= _TWO_BYTES
    return np.ascontiguousarray(part.astype(np.uint16) if fits else part)
