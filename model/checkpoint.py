"""Checkpoints: a directory with config.json, model.safetensors and tokenizer.json.

Our own have `"model_type": "fillmask"`; Hugging Face directories are read through their family's
mapping. Nothing in a checkpoint is executed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from model.config import EncoderConfig
from model.encoder import TiedEncoder
from model.families import FAMILIES, Family
from model.rounding_plan import RoundingPlan
from model.tokenizer_files import read_tokenizer_files

OWN_MODEL_TYPE = "fillmask"
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
    (directory / "config.json").write_text(json.dumps(fields, indent=2) + "\n")
    (directory / "tokenizer.json").write_bytes(tokenizer_json)
    tensors = {name: tensor.contiguous().cpu() for name, tensor in model.state_dict().items()}
    if rounding:
        tensors |= {ROUNDING + name: f.clone().cpu() for name, f in rounding.factors.items()}
    # a save cut short must leave the weights before it readable
    path = directory / "model.safetensors"
    save_file(tensors, path.with_suffix(".tmp"), metadata={"format": "pt"})
    path.with_suffix(".tmp").replace(path)


def load_checkpoint(directory: Path) -> Checkpoint:
    """Read one of our checkpoints or a Hugging Face directory of a known family.

    Raises:
        CheckpointError: a file is missing or broken, the family or a configuration value is
            unknown, or tensors are missing, left over or of the wrong shape (all are listed).
    """
    fields = _read_config_json(directory / "config.json")
    tensors = _read_tensors(directory / "model.safetensors")
    model_type = fields.pop("model_type", None)
    optional_prefixes: tuple[str, ...] = ()
    try:
        if model_type == OWN_MODEL_TYPE:
            config = EncoderConfig.from_dict(fields)
        else:
            family = _family(model_type)
            config, optional_prefixes = family.read_config(fields), family.head_prefixes
            tensors = _renamed(tensors, family)
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{directory / 'config.json'}: {error}") from None

    model = TiedEncoder(config)
    rounding = _take_rounding(tensors, model)
    head_is_new = bool(optional_prefixes) and not any(
        name.startswith(optional_prefixes) for name in tensors
    )
    if head_is_new:
        initial = model.state_dict()
        tensors |= {name: t for name, t in initial.items() if name.startswith(optional_prefixes)}
    _check_fit(tensors, model.state_dict())
    model.load_state_dict(tensors)
    try:
        tokenizer = read_tokenizer_files(directory, model_type)
    except ValueError as error:
        raise CheckpointError(str(error)) from None
    if tokenizer is None:
        return Checkpoint(model.eval(), None, head_is_new, rounding)
    tokenizer_json, mask_token = tokenizer.tokenizer_json, tokenizer.mask_token
    return Checkpoint(model.eval(), tokenizer_json, head_is_new, rounding, mask_token)


def _read_config_json(path: Path) -> dict[str, Any]:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{path} does not exist") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(fields, dict):
        raise CheckpointError(f"{path} must hold a JSON object")
    return fields


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        tensors = load_file(path)
    except FileNotFoundError:
        raise CheckpointError(f"{path} does not exist") from None
    except SafetensorError as error:
        raise CheckpointError(f"{path} is not a readable safetensors file: {error}") from None
    return {name: tensor.float() for name, tensor in tensors.items()}


def _family(model_type: object) -> Family:
    family = FAMILIES.get(model_type) if isinstance(model_type, str) else None
    if family is None:
        known = ", ".join([OWN_MODEL_TYPE, *FAMILIES])
        raise CheckpointError(f"model_type {model_type!r} is not supported, only {known}")
    return family


def _renamed(tensors: dict[str, Tensor], family: Family) -> dict[str, Tensor]:
    for second, first in family.aliases.items():
        if second in tensors and first in tensors:
            if not torch.equal(tensors[second], tensors[first]):
                raise CheckpointError(f"{second} differs from {first}: the checkpoint is not tied")
            del tensors[second]
    ours: dict[str, Tensor] = {}
    unexpected = []
    for name, tensor in tensors.items():
        if any(re.fullmatch(pattern, name) for pattern in family.ignored):
            continue
        renamed = family.rename(name)
        if renamed is None:
            unexpected.append(name)
        elif renamed in ours:
            raise CheckpointError(f"{name} is in the checkpoint under a second name")
        else:
            ours[renamed] = tensor
    if unexpected:
        raise CheckpointError(f"tensors this family does not have: {_listed(unexpected)}")
    return ours


def _take_rounding(tensors: dict[str, Tensor], model: TiedEncoder) -> RoundingPlan | None:
    names = [name for name in tensors if name.startswith(ROUNDING)]
    if not names:
        return None
    plan = RoundingPlan({name.removeprefix(ROUNDING): tensors.pop(name) for name in names})
    try:
        plan.check(model)
    except ValueError as error:
        raise CheckpointError(f"the rounding of the weights: {error}") from None
    return plan


def _check_fit(tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    problems = []
    if missing := sorted(set(expected) - set(tensors)):
        problems.append(f"missing tensors: {_listed(missing)}")
    if extra := sorted(set(tensors) - set(expected)):
        problems.append(f"unexpected tensors: {_listed(extra)}")
    if wrong := [
        f"{name} is {tuple(tensors[name].shape)}, not {tuple(expected[name].shape)}"
        for name in sorted(set(tensors) & set(expected))
        if tensors[name].shape != expected[name].shape
    ]:
        problems.append(f"wrong shapes: {_listed(wrong)}")
    if problems:
        raise CheckpointError("; ".join(problems))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
