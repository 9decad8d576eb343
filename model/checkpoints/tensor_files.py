"""A checkpoint's tensors by name, read from its files when they are asked for.

One or several safetensors files are mapped, so that a tensor takes memory only where it is looked
at. PyTorch's own format is read as data alone: nothing in it is executed.
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
INDEX_SUFFIX = ".index.json"  # of the file that says which tensor lies in which part


class TensorFiles(Mapping[str, Tensor]):
    """The tensors of a directory, as they are stored.

    Args:
        directory: holds `model.safetensors`, or its parts with their index, or else
            `pytorch_model.bin` in one or several parts.

    Raises:
        ValueError: there are no weights, a file is broken, or the parts are not those of the
            index.
    """

    def __init__(self, directory: Path) -> None:
        self._sources: dict[str, Any] = {}  # by tensor name: an open file, or the tensor
        paths, index = _layout(directory)
        for path in paths:
            self._sources |= _open(path)
        if index is not None and index.keys() != self._sources.keys():
            wrong = min(index.keys() ^ self._sources.keys())
            raise ValueError(f"{directory}: {wrong} is in the index or in the parts, not in both")

    def __getitem__(self, name: str) -> Tensor:
        source = self._sources[name]
        tensor: Tensor = source if isinstance(source, Tensor) else source.get_tensor(name)
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


def _layout(directory: Path) -> tuple[list[Path], dict[str, str] | None]:
    """The files with the weights, and their index where they are parts."""
    for name in (SAFETENSORS, PICKLED):
        if (directory / name).is_file():
            return [directory / name], None
        index = _read_index(directory / f"{name}{INDEX_SUFFIX}")
        if index is not None:
            return [_inside(directory, part) for part in sorted(set(index.values()))], index
    raise ValueError(f"{directory / SAFETENSORS} does not exist, nor {PICKLED}")


def _read_index(path: Path) -> dict[str, str] | None:
    if not path.is_file():
        return None
    try:
        parts = json.loads(path.read_text(encoding="utf-8"))["weight_map"]
        return {str(name): str(part) for name, part in parts.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{path} is not an index of tensors") from None


def _inside(directory: Path, name: str) -> Path:
    if Path(name).name != name:
        raise ValueError(f"{directory}: the index names {name!r}, which has a path in it")
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
        raise ValueError(f"{path} is not a file of tensors alone: {reason}") from None
    if not isinstance(tensors, dict) or not all(isinstance(t, Tensor) for t in tensors.values()):
        raise ValueError(f"{path} does not hold tensors by name")
    return tensors
