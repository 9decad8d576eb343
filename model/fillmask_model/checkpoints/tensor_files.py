"""Lazy reader of a checkpoint's tensors by name.

Memory mapping of safetensors files loads only the pages that the caller reads. With the option
`weights_only`, torch.load never executes code of a pickle file.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile, is_zipfile

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from fillmask_model.files import check_file, read_object

SAFETENSORS, PICKLED = "model.safetensors", "pytorch_model.bin"
INDEX_SUFFIX = ".index.json"  # suffix of the file that maps tensors to weight files
# names of weights in other forms, and how to make a checkpoint of them
_OTHER_FORMS = {
    r"adapter_model\..*": "merge it into its base model with PEFT, and save the merged model",
    r"(tf|flax)_model.*|.*\.ckpt.*\.index": "load it with from_tf=True (or "
    "from_flax=True) in transformers 4, and save it again",
    r".*-of-.*\.(safetensors|bin)": f"add the index of the parts, *{INDEX_SUFFIX}",
    r".*\.safetensors": f"rename it to {SAFETENSORS}",
    r".*\.(ckpt|pth?)": f"save only its tensors as {SAFETENSORS}",
    r".*\.(gguf|onnx|ot)": "use the checkpoint from which it was made",
}


class TensorFiles(Mapping[str, Tensor]):
    """Tensors by name in the weight files of a directory.

    Args:
        directory: directory with `model.safetensors` or `pytorch_model.bin`. Several files with
            an index may replace the single file.

    Raises:
        ValueError: a file is missing or broken, or the tensors do not match the index.
    """

    def __init__(self, directory: Path) -> None:
        self._sources: dict[str, Any] = {}  # open file or tensor by tensor name
        paths, index = find_weight_files(directory)
        for path in paths:
            self._sources |= _open(path)
        if index is not None and index.keys() != self._sources.keys():
            wrong = min(index.keys() ^ self._sources.keys())
            raise ValueError(
                f"{directory}: the index and the weight files must have the same tensors "
                f"({wrong} is only in one of them); download the files again"
            )

    def __getitem__(self, name: str) -> Tensor:
        source = self._sources[name]
        tensor: Tensor = source if isinstance(source, Tensor) else source.get_tensor(name)
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


def find_weight_files(directory: Path) -> tuple[list[Path], dict[str, str] | None]:
    """Find the weight files of a directory that the reader opens.

    Returns:
        The files and their index. The index is None for a single file.

    Raises:
        ValueError: the directory has no weight file, or the index is invalid.
    """
    name = preferred_weights([path.name for path in directory.glob("*") if path.is_file()])
    if name is None:
        other = advise_on_form(path.name for path in directory.glob("*"))
        raise ValueError(f"{directory} must contain {SAFETENSORS} or {PICKLED}{other}")
    if not name.endswith(INDEX_SUFFIX):
        return [directory / name], None
    index = _read_index(directory / name)
    return [_shard(directory, part) for part in sorted(set(index.values()))], index


def preferred_weights(names: Collection[str]) -> str | None:
    """Return the file of weights that the reader opens, or its index, if it is among the names."""
    files = (f"{name}{suffix}" for name in (SAFETENSORS, PICKLED) for suffix in ("", INDEX_SUFFIX))
    return next((file for file in files if file in names), None)


def advise_on_form(names: Iterable[str]) -> str:
    """Return the end of a message about weights that have only other forms, otherwise ""."""
    files = sorted(names)
    if any(name.removesuffix(INDEX_SUFFIX) in (SAFETENSORS, PICKLED) for name in files):
        return ""
    for pattern, cure in _OTHER_FORMS.items():
        if found := [name for name in files if re.fullmatch(pattern, name)]:
            return f" (got {found[0]}); {cure}"
    return ""


def _read_index(path: Path) -> dict[str, str]:
    parts = read_object(path).get("weight_map")
    if not isinstance(parts, dict):
        raise ValueError(  # noqa: TRY004 - an invalid file is a ValueError
            f"{path} must have an object weight_map that maps tensor names to file names "
            f"(got {parts!r})"
        )
    return {str(name): str(part) for name, part in parts.items()}


def _shard(directory: Path, name: str) -> Path:
    if Path(name).name != name:
        raise ValueError(
            f"{directory}: the index must list file names without a path (got {name!r})"
        )
    return directory / name


def _reject_compression(path: Path) -> None:
    """Reject a zip file that is larger in memory than on the disk, unlike those of torch."""
    try:
        with ZipFile(path) as file:
            size = sum(entry.file_size for entry in file.infolist())
    except (BadZipFile, NotImplementedError):
        return  # no zip file, or one that torch refuses
    if size > path.stat().st_size:
        raise ValueError(
            f"{path} must not be compressed, as files of torch.save are not (got {size} bytes in "
            f"{path.stat().st_size} bytes); save it again"
        )


def _open(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ValueError(f"{path} does not exist; download it, or remove it from the index")
    check_file(path)
    if path.suffix == ".safetensors":
        try:
            file = safe_open(path, framework="pt")
        except SafetensorError as error:
            raise ValueError(
                f"{path} is not a valid safetensors file ({error}); download it again"
            ) from None
        return dict.fromkeys(file.keys(), file)  # type: ignore[no-untyped-call]  # untyped library
    _reject_compression(path)
    try:
        # torch maps only zip files, which it has written since 1.6
        tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=is_zipfile(path))
    except pickle.UnpicklingError:
        raise ValueError(
            f"{path} is not a file of tensors; download it again, or save only its tensors as "
            f"{SAFETENSORS}"
        ) from None
    except (OSError, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - torch raises nearly any exception for a damaged file
        raise ValueError(f"{path} is incomplete or damaged; download it again") from None
    values = tensors.values() if isinstance(tensors, dict) else [tensors]
    other = [type(value).__name__ for value in values if not isinstance(value, Tensor)]
    if other or not isinstance(tensors, dict):
        raise ValueError(
            f"{path} must contain only a dictionary of tensors by name (got "
            f"{(other or ['a tensor'])[0]}); save only its tensors as {SAFETENSORS}"
        )
    return tensors
