"""Weights in one or several files of safetensors or PyTorch, read without running code."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from fillmask_model.checkpoints.tensor_files import TensorFiles

LFS_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 440449768\n"
INDEX = "model.safetensors.index.json"
TENSORS = {"a.weight": torch.arange(6.0).reshape(2, 3), "b.bias": torch.ones(4).half()}


def single(directory: Path) -> None:
    save_file(TENSORS, directory / "model.safetensors")


def pickled(directory: Path, *, before_1_6: bool = False) -> None:
    path = directory / "pytorch_model.bin"
    torch.save(TENSORS, path, _use_new_zipfile_serialization=not before_1_6)


def shards(directory: Path, name: str = "model.safetensors", save: Any = save_file) -> None:
    """Save the tensors as two files with an index."""
    parts = {}
    for number, (key, tensor) in enumerate(TENSORS.items(), 1):
        parts[key] = f"model-0000{number}-of-00002{Path(name).suffix}"
        save({key: tensor}, directory / parts[key])
    index = {"metadata": {}, "weight_map": parts}
    (directory / f"{name}.index.json").write_text(json.dumps(index))


LAYOUTS: dict[str, Callable[[Path], None]] = {
    "single": single,
    "shards": shards,
    "pickled": pickled,
    "pickled before 1.6": partial(pickled, before_1_6=True),
    "pickled shards": partial(shards, name="pytorch_model.bin", save=torch.save),
}


@pytest.mark.parametrize("save", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_is_read(save: Callable[[Path], None], tmp_path: Path) -> None:
    save(tmp_path)
    files = TensorFiles(tmp_path)
    assert set(files) == set(TENSORS)
    assert len(files) == len(TENSORS)
    for name, tensor in TENSORS.items():
        assert files[name].dtype == tensor.dtype
        assert torch.equal(files[name], tensor)


def test_safetensors_come_first(tmp_path: Path) -> None:
    single(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"no pickle at all")
    assert set(TensorFiles(tmp_path)) == set(TENSORS)


class Bomb:
    """Object whose pickle runs code."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return (exec, ("raise SystemExit",))


def cut(write: Callable[[Path], None], name: str) -> Callable[[Path], int]:
    """Return a function that writes half of a file."""

    def damage(directory: Path) -> int:
        write(directory)
        content = (directory / name).read_bytes()
        return (directory / name).write_bytes(content[: len(content) // 2])

    return damage


def lose_part(directory: Path) -> None:
    """Write an index of two files, but only one of the files."""
    shards(directory)
    (directory / "model-00001-of-00002.safetensors").unlink()


def other_part(directory: Path) -> None:
    """Write an index and two files, one of which has a tensor that is not in the index."""
    shards(directory)
    other: dict[str, Tensor] = {"c.bias": torch.ones(1)}
    save_file(other, directory / "model-00002-of-00002.safetensors")


def put(name: str, content: str = "") -> Callable[[Path], int]:
    """Return a function that writes a file."""
    return lambda directory: (directory / name).write_text(content)


BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no weights": (
        put("model.bin"),
        r"must contain model\.safetensors or pytorch_model\.bin",
    ),
    "a file cut short": (
        cut(single, "model.safetensors"),
        r"model\.safetensors is not a valid safetensors file",
    ),
    "a pickle cut short": (
        cut(pickled, "pytorch_model.bin"),
        r"pytorch_model\.bin is incomplete or damaged; download it again",
    ),
    "an empty file": (
        put("pytorch_model.bin"),
        r"pytorch_model\.bin is incomplete or damaged; download it again",
    ),
    "no pickle": (
        put("pytorch_model.bin", "<html>"),
        r"pytorch_model\.bin is not a file of tensors; download it again",
    ),
    **{
        f"a Git LFS pointer, {name}": (
            put(name, LFS_POINTER),
            rf"{name} is a Git LFS pointer instead of the file itself; run `git lfs pull`, or",
        )
        for name in ("model.safetensors", "pytorch_model.bin", INDEX)
    },
    **{
        name: (
            put(name),
            rf"must contain model\.safetensors or pytorch_model\.bin \(got {name}\); {cure}",
        )
        for name, cure in {
            "adapter_model.bin": "merge it into its base model with PEFT, and save the",
            "tf_model.h5": r"load it with from_tf=True \(or from_flax=True\) in transf",
            "bert_model.ckpt.index": r"load it with from_tf=True \(or from_flax=True\) in transf",
            "flax_model.msgpack": r"load it with from_tf=True \(or from_flax=True\) in transf",
            "model-00001-of-00002.safetensors": r"add the index of the parts, \*\.index\.json",
            "model.fp16.safetensors": "rename it to model.safetensors",
            "epoch=3.ckpt": "save only its tensors as model.safetensors",
            "model.Q8_0.gguf": "use the checkpoint from which it was made",
        }.items()
    },
    "a pickle with code": (
        lambda d: (d / "pytorch_model.bin").write_bytes(pickle.dumps({"a": Bomb()}, protocol=2)),
        r"pytorch_model\.bin is not a file of tensors; .* save only its tensors",
    ),
    "a pickle of something else": (
        lambda d: torch.save([1, 2], d / "pytorch_model.bin"),
        r"pytorch_model\.bin must contain only a dictionary .* \(got list\); save only its tensors",
    ),
    "a single tensor": (
        lambda d: torch.save(torch.zeros(1), d / "pytorch_model.bin"),
        r"pytorch_model\.bin must contain only a dictionary .* \(got a tensor\)",
    ),
    "a dictionary with other values": (
        lambda d: torch.save({"a": torch.zeros(1), "b": 1}, d / "pytorch_model.bin"),
        r"pytorch_model\.bin must contain only a dictionary .* \(got int\)",
    ),
    "a part missing": (
        lose_part,
        r"model-00001-of-00002\.safetensors does not exist",
    ),
    "a part with another tensor": (other_part, r"the same tensors \([bc]\.bias is only in one"),
    "an index that is no JSON": (put(INDEX, "{"), r"index\.json is not valid JSON"),
    "an index of a list": (put(INDEX, "[]"), r"must contain a JSON object \(got list"),
    "an index without a map": (put(INDEX, "{}"), r"object weight_map .* \(got None\)"),
    "an index that leads away": (
        put(INDEX, '{"weight_map": {"a": "../x.safetensors"}}'),
        r"without a path \(got '\.\./x\.safetensors'\)",
    ),
}


@pytest.mark.parametrize(("spoil", "message"), BAD.values(), ids=BAD)
def test_each_broken_layout_is_one_sentence(
    spoil: Callable[[Path], Any], message: str, tmp_path: Path
) -> None:
    # The ValueError has one line and names the file.
    spoil(tmp_path)
    with pytest.raises(ValueError, match=message) as caught:
        TensorFiles(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("write", [pickled, LAYOUTS["pickled before 1.6"]])
def test_damaged_pickles_fail_with_value_errors(
    write: Callable[[Path], None], tmp_path: Path
) -> None:
    # Damage in the values of the tensors stays unnoticed.
    write(tmp_path)
    path = tmp_path / "pytorch_model.bin"
    complete = path.read_bytes()
    for size in range(0, len(complete), 23):
        path.write_bytes(complete[:size])
        with pytest.raises(ValueError, match="download it again"):
            TensorFiles(tmp_path)
    random = np.random.default_rng(0)
    for position in random.integers(len(complete), size=60):
        damaged = bytearray(complete)
        damaged[position] = random.integers(256)
        path.write_bytes(damaged)
        with suppress(ValueError):
            TensorFiles(tmp_path)
