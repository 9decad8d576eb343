"""Tensors of a checkpoint by name, read lazily from its files.

Safetensors files are mapped into memory, so that only the pages that are read take memory.
PyTorch's pickle format is loaded with `weights_only`: nothing in it is executed.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

SAFETENSORS, PICKLED = "model.safetensors", "pytorch_model.bin"
INDEX_SUFFIX = ".index.json"  # of the file that maps tensors to shards


class TensorFiles(Mapping[str, Tensor]):
    """Tensors of a directory, as they are stored.

    Args:
        directory: contains `model.safetensors` or its shards with their index, or else
            `pytorch_model.bin` in one file or in shards.

    Raises:
        ValueError: there are no weights, a file is broken, or the shards do not match the index.
    """

    def __init__(self, directory: Path) -> None:
        self._sources: dict[str, Any] = {}  # tensor name to an open file or a tensor
        paths, index = _weight_files(directory)
        for path in paths:
            self._sources |= _open(path)
        if index is not None and index.keys() != self._sources.keys():
            wrong = min(index.keys() ^ self._sources.keys())
            raise ValueError(
                f"{directory}: the index does not match its files: {wrong} is only in one of them"
            )

    def __getitem__(self, name: str) -> Tensor:
        source = self._sources[name]
        tensor: Tensor = source if isinstance(source, Tensor) else source.get_tensor(name)
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


def _weight_files(directory: Path) -> tuple[list[Path], dict[str, str] | None]:
    """Find the files with the weights, and their index if they are shards."""
    for name in (SAFETENSORS, PICKLED):
        if (directory / name).is_file():
            return [directory / name], None
        index = _read_index(directory / f"{name}{INDEX_SUFFIX}")
        if index is not None:
            return [_shard(directory, part) for part in sorted(set(index.values()))], index
    raise ValueError(f"{directory} has neither {SAFETENSORS} nor {PICKLED}")


def _read_index(path: Path) -> dict[str, str] | None:
    if not path.is_file():
        return None
    try:
        parts = json.loads(path.read_text(encoding="utf-8"))["weight_map"]
        return {str(name): str(part) for name, part in parts.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(
            f"{path} is not an index of tensors: weight_map must map names to files"
        ) from None


def _shard(directory: Path, name: str) -> Path:
    if Path(name).name != name:
        raise ValueError(
            f"{directory}: the index must list file names without a path (got {name!r})"
        )
    return directory / name


def _open(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ValueError(f"{path} does not exist")
    if path.suffix == ".safetensors":
        try:
            file = safe_open(path, framework="pt")
        except SafetensorError as error:
            raise ValueError(f"{path} is not a readable safetensors file: {error}") from None
        return dict.fromkeys(file.keys(), file)  # type: ignore[no-untyped-call]  # no types
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{path} must contain only tensors: {reason}") from None
    if not isinstance(tensors, dict) or not all(isinstance(t, Tensor) for t in tensors.values()):
        raise ValueError(f"{path} must map names to tensors")
    return tensors
