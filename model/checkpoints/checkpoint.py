"""Checkpoints: a directory with config.json, model.safetensors and tokenizer.json.

Our own have `"model_type": "fillmask"`; Hugging Face directories are read through their family's
mapping. Nothing in a checkpoint is executed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from model.checkpoints.families import FAMILIES, Family, Fields, Reading
from model.checkpoints.families.tensors import HEAD_PREFIXES, encoder_tensors, stored_name
from model.checkpoints.tensor_files import TensorFiles
from model.encoder.config import EncoderConfig
from model.encoder.encoder import TiedEncoder
from model.files import read_object, replacing
from model.memory import give_back
from model.quantization.rounding_plan import RoundingPlan
from model.tokenizers.loading import read_tokenizer_files

OWN_MODEL_TYPE = "fillmask"
VALUES_AT_ONCE = 2**22
ROUNDING = "rounding."  # prefix of the factors of an encoder trained for int8


class CheckpointError(ValueError):
    """A checkpoint cannot be read; the message is one sentence for its owner."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A loaded checkpoint.

    Attributes:
        model: the encoder with the checkpoint's weights, on the CPU, in fp32.
        tokenizer_json: a complete tokenizer.json; None where the directory has no tokenizer.
        head_is_new: the checkpoint had no masked-language-model head; it was initialised.
        rounding: where the weights are already what int8 can hold, how; else None.
        mask_token: the text that marks a mask; None where the directory has no tokenizer.
    """

    model: TiedEncoder
    tokenizer_json: bytes | None
    head_is_new: bool
    rounding: RoundingPlan | None = None
    mask_token: str | None = None

    def require_head(self) -> None:
        """Raise CheckpointError where the head is new: it has learnt nothing to be served."""
        if self.head_is_new:
            raise CheckpointError(
                "the checkpoint has no masked-language-model head; train one first"
            )


def save_checkpoint(
    directory: Path,
    model: TiedEncoder,
    tokenizer_json: bytes,
    rounding: RoundingPlan | None = None,
) -> None:
    """Write a checkpoint; the embedding table is stored once.

    Args:
        directory: made where there is none.
        model: the encoder.
        tokenizer_json: the bytes of its tokenizer's file.
        rounding: what its weights were rounded by, if they were.
    """
    directory.mkdir(parents=True, exist_ok=True)
    fields = {"model_type": OWN_MODEL_TYPE, **model.config.to_dict()}
    with replacing(directory / "config.json") as temporary:
        temporary.write_text(json.dumps(fields, indent=2) + "\n")
    with replacing(directory / "tokenizer.json") as temporary:
        temporary.write_bytes(tokenizer_json)
    tensors = {name: tensor.contiguous().cpu() for name, tensor in model.state_dict().items()}
    if rounding:
        tensors |= {ROUNDING + name: f.clone().cpu() for name, f in rounding.factors.items()}
    # a save cut short must leave the weights before it readable
    with replacing(directory / "model.safetensors") as temporary:
        save_file(tensors, temporary, metadata={"format": "pt"})


def load_checkpoint(directory: Path) -> Checkpoint:
    """Read one of our checkpoints or a Hugging Face directory of a known family.

    Raises:
        CheckpointError: a file is missing or broken, the family or a configuration value is
            unknown, or tensors are missing, left over, of the wrong shape or not finite (all are
            listed).
    """
    try:
        return _load(directory)
    except ValueError as error:
        raise CheckpointError(str(error)) from None


def _load(directory: Path) -> Checkpoint:
    path = directory / "config.json"
    fields = read_object(path)
    stored = TensorFiles(directory)
    model_type = fields.pop("model_type", None)
    with _named(path):
        reading, family = _read_config(model_type, fields)
    with _named(directory):
        tensors = dict(stored) if family is None else encoder_tensors(stored, family, reading)
    rounding = _take_rounding(tensors) if family is None else None
    head_is_new = family is not None and not any(n.startswith(HEAD_PREFIXES) for n in tensors)
    with _named(directory):
        called = partial(stored_name, family) if family else str
        model = _filled(reading.config, tensors, called, head_is_new=head_is_new)
    if rounding:
        with _named(f"{directory}: the rounding of the weights"):
            rounding.check(model)
    tokenizer = read_tokenizer_files(directory, model_type)
    if tokenizer is None:
        return Checkpoint(model.eval(), None, head_is_new, rounding)
    tokenizer_json, mask_token = tokenizer.tokenizer_json, tokenizer.mask_token
    return Checkpoint(model.eval(), tokenizer_json, head_is_new, rounding, mask_token)


@contextmanager
def _named(where: object) -> Iterator[None]:
    """Errors say where they were found."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _read_config(model_type: object, fields: dict[str, Any]) -> tuple[Reading, Family | None]:
    """What a config.json says, and the family of a checkpoint that is not our own."""
    if model_type == OWN_MODEL_TYPE:
        return Reading(EncoderConfig.from_dict(fields)), None
    family = _family(model_type)
    remaining = Fields(fields)
    reading = family.read(remaining)
    remaining.end()
    return reading, family


def _family(model_type: object) -> Family:
    family = FAMILIES.get(model_type) if isinstance(model_type, str) else None
    if family is None:
        known = ", ".join([OWN_MODEL_TYPE, *FAMILIES])
        raise ValueError(f"model_type {model_type!r} is not supported, only {known}")
    return family


def _filled(
    config: EncoderConfig,
    tensors: dict[str, Tensor],
    called: Callable[[str], str],
    *,
    head_is_new: bool,
) -> TiedEncoder:
    """An encoder with these weights; float32 ones are not copied, errors say what is called how."""
    with torch.device("cpu" if head_is_new else "meta"):
        model = TiedEncoder(config)
    expected = model.state_dict()
    if head_is_new:
        tensors |= {n: tensor for n, tensor in expected.items() if n.startswith(HEAD_PREFIXES)}
    _check_fit(tensors, expected, called)
    weights = {name: tensors[name].float() for name in expected}
    broken = [called(name) for name, tensor in weights.items() if not _is_finite(tensor)]
    if broken:
        raise ValueError(f"weights that are not finite: {_listed(broken)}")
    model.load_state_dict(weights, assign=True)
    model.embeddings.make_sinusoids()  # they are in no checkpoint
    give_back(weights.values())  # looking at them has brought all of a mapped file into memory
    return model


def _is_finite(tensor: Tensor) -> bool:
    """Looked at a part at a time: a copy of a large table would be as large."""
    parts = torch.split(tensor.flatten(), VALUES_AT_ONCE)
    return all(bool(part.isfinite().all()) for part in parts)


def _take_rounding(tensors: dict[str, Tensor]) -> RoundingPlan | None:
    names = [name for name in tensors if name.startswith(ROUNDING)]
    factors = {name.removeprefix(ROUNDING): tensors.pop(name) for name in names}
    return RoundingPlan(factors) if factors else None


def _check_fit(
    tensors: dict[str, Tensor], expected: dict[str, Tensor], called: Callable[[str], str]
) -> None:
    problems = []
    if missing := sorted(set(expected) - set(tensors)):
        problems.append(f"missing tensors: {_listed(map(called, missing))}")
    if extra := sorted(set(tensors) - set(expected)):
        problems.append(f"unexpected tensors: {_listed(map(called, extra))}")
    if wrong := [
        f"{called(name)} is {tuple(tensors[name].shape)}, not {tuple(expected[name].shape)}"
        for name in sorted(set(tensors) & set(expected))
        if tensors[name].shape != expected[name].shape
    ]:
        problems.append(f"wrong shapes: {_listed(wrong)}")
    if problems:
        raise ValueError("; ".join(problems))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
