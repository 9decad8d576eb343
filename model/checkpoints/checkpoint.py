"""Reader and writer of checkpoints.

A checkpoint is a directory with config.json, model.safetensors and tokenizer.json. Fillmask's own
checkpoints have `"model_type": "fillmask"`. The reader converts Hugging Face checkpoints with the
mapping of their family. The reader never executes code of a checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from model.checkpoints.families.family import Family, ParsedConfig
from model.checkpoints.families.fields import Fields
from model.checkpoints.families.registry import FAMILIES
from model.checkpoints.families.tensors import HEAD_PREFIXES, encoder_tensors, stored_name
from model.checkpoints.tensor_files import TensorFiles
from model.encoder.classifier import ClassifierConfig
from model.encoder.config import EncoderConfig
from model.encoder.encoder import TiedEncoder
from model.files import atomic_replace, read_object
from model.memory import release_memory
from model.quantization.rounding_plan import RoundingPlan
from model.tokenizers.loading import read_tokenizer_files

OWN_MODEL_TYPE = "fillmask"
VALUES_AT_ONCE = 2**22
ROUNDING = "rounding."  # name prefix of rounding factors in model.safetensors


class CheckpointError(ValueError):
    """Failure to read or to serve a checkpoint.

    The message is one sentence for the user.
    """


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Loaded checkpoint.

    Attributes:
        model: the encoder with the checkpoint's weights, on the CPU, in fp32.
        tokenizer_json: content of a complete tokenizer.json. None without a tokenizer.
        head_is_new: True for a checkpoint without a head. The model then has a new, random head.
        rounding: factors of weights that training has rounded to int8. None for unrounded weights.
        mask_token: text of the mask token. None without a tokenizer.
    """

    model: TiedEncoder
    tokenizer_json: bytes | None
    head_is_new: bool
    rounding: RoundingPlan | None = None
    mask_token: str | None = None

    def require_head(self) -> None:
        """Reject a checkpoint with a new, untrained head.

        Raises:
            CheckpointError: the head is new.
        """
        if self.head_is_new:
            raise CheckpointError(
                "the checkpoint has no masked-language-model head; train one with "
                "`fillmask-train pretrain --init`"
            )


def save_checkpoint(
    directory: Path,
    model: TiedEncoder,
    tokenizer_json: bytes,
    rounding: RoundingPlan | None = None,
) -> None:
    """Write a checkpoint that stores the embedding table once.

    Args:
        directory: target directory, created if necessary.
        model: the encoder.
        tokenizer_json: content of the encoder's tokenizer.json.
        rounding: factors of the rounded weights. None for unrounded weights.
    """
    directory.mkdir(parents=True, exist_ok=True)
    fields = {"model_type": OWN_MODEL_TYPE, **model.config.to_dict()}
    if model.classifier is not None:
        fields["classifier"] = model.classifier.config.to_dict()
    with atomic_replace(directory / "config.json") as temporary:
        temporary.write_text(json.dumps(fields, indent=2) + "\n")
    with atomic_replace(directory / "tokenizer.json") as temporary:
        temporary.write_bytes(tokenizer_json)
    tensors = {name: tensor.contiguous().cpu() for name, tensor in model.state_dict().items()}
    if rounding:
        tensors |= {ROUNDING + name: f.clone().cpu() for name, f in rounding.factors.items()}
    # an interrupted save must leave the previous weights readable
    with atomic_replace(directory / "model.safetensors") as temporary:
        save_file(tensors, temporary, metadata={"format": "pt"})


def load_checkpoint(directory: Path) -> Checkpoint:
    """Read a checkpoint of fillmask or of a known Hugging Face family.

    Raises:
        CheckpointError: a file, the family, a configuration value or a tensor is missing, unknown
            or invalid. The message lists all invalid tensors.
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
    with _prefix_errors(path):
        parsed, classifier, family = _read_config(model_type, fields)
    with _prefix_errors(directory):
        tensors = dict(stored) if family is None else encoder_tensors(stored, family, parsed)
    rounding = _pop_rounding(tensors) if family is None else None
    head_is_new = family is not None and not any(n.startswith(HEAD_PREFIXES) for n in tensors)
    with _prefix_errors(directory):
        display_name = partial(stored_name, family) if family else str
        model = _build_encoder(
            parsed.config, classifier, tensors, display_name, head_is_new=head_is_new
        )
    if rounding:
        with _prefix_errors(f"{directory}: the rounding of the weights"):
            rounding.check(model)
    tokenizer = read_tokenizer_files(directory, model_type)
    if tokenizer is None:
        return Checkpoint(model.eval(), None, head_is_new, rounding)
    tokenizer_json, mask_token = tokenizer.tokenizer_json, tokenizer.mask_token
    return Checkpoint(model.eval(), tokenizer_json, head_is_new, rounding, mask_token)


@contextmanager
def _prefix_errors(where: object) -> Iterator[None]:
    """Prefix the message of a ValueError with its location."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _read_config(
    model_type: object, fields: dict[str, Any]
) -> tuple[ParsedConfig, ClassifierConfig | None, Family | None]:
    """Parse the fields of config.json.

    Returns:
        The configurations of the encoder and of its classification head, and the family. The
        family is None for fillmask's own checkpoints.
    """
    if model_type == OWN_MODEL_TYPE:
        head = fields.pop("classifier", None)
        classifier = None if head is None else ClassifierConfig.from_dict(head)
        return ParsedConfig(EncoderConfig.from_dict(fields)), classifier, None
    family = _family(model_type)
    remaining = Fields(fields)
    parsed = family.read(remaining)
    remaining.reject_unknown()
    return parsed, None, family


def _family(model_type: object) -> Family:
    family = FAMILIES.get(model_type) if isinstance(model_type, str) else None
    if family is None:
        known = ", ".join([OWN_MODEL_TYPE, *FAMILIES])
        raise ValueError(f"model_type must be one of {known} (got {model_type!r})")
    return family


def _build_encoder(
    config: EncoderConfig,
    classifier: ClassifierConfig | None,
    tensors: dict[str, Tensor],
    display_name: Callable[[str], str],
    *,
    head_is_new: bool,
) -> TiedEncoder:
    """Build an encoder with given weights, without copying float32 tensors.

    Args:
        config: sizes and choices of the encoder.
        classifier: choices of the classification head. None without such a head.
        tensors: weights by the names of `TiedEncoder`.
        display_name: function that returns a tensor's name in the checkpoint, for error messages.
        head_is_new: whether to initialise a new head.
    """
    with torch.device("cpu" if head_is_new else "meta"):
        model = TiedEncoder(config, classifier)
    expected = model.state_dict()
    if head_is_new:
        tensors |= {n: tensor for n, tensor in expected.items() if n.startswith(HEAD_PREFIXES)}
    _check_tensors(tensors, expected, display_name)
    weights = {name: tensors[name].float() for name in expected}
    broken = [display_name(name) for name, tensor in weights.items() if not _is_finite(tensor)]
    if broken:
        raise ValueError(f"weights must be finite (got NaN or infinity in {', '.join(broken)})")
    model.load_state_dict(weights, assign=True)
    model.embeddings.compute_sinusoids()  # checkpoints do not store sinusoids
    release_memory(weights.values())  # the check has loaded every page of a mapped file
    return model


def _is_finite(tensor: Tensor) -> bool:
    """Return whether all values are finite.

    The check runs part by part, because isfinite on a whole table doubles its memory.
    """
    parts = torch.split(tensor.flatten(), VALUES_AT_ONCE)
    return all(bool(part.isfinite().all()) for part in parts)


def _pop_rounding(tensors: dict[str, Tensor]) -> RoundingPlan | None:
    names = [name for name in tensors if name.startswith(ROUNDING)]
    factors = {name.removeprefix(ROUNDING): tensors.pop(name) for name in names}
    return RoundingPlan(factors) if factors else None


def _check_tensors(
    tensors: dict[str, Tensor], expected: dict[str, Tensor], display_name: Callable[[str], str]
) -> None:
    problems = []
    if missing := sorted(set(expected) - set(tensors)):
        problems.append(f"missing tensors: {', '.join(map(display_name, missing))}")
    if extra := sorted(set(tensors) - set(expected)):
        problems.append(f"unexpected tensors: {', '.join(map(display_name, extra))}")
    if wrong := [
        f"{display_name(name)} must be {tuple(expected[name].shape)} "
        f"(got {tuple(tensors[name].shape)})"
        for name in sorted(set(tensors) & set(expected))
        if tensors[name].shape != expected[name].shape
    ]:
        problems.append(f"wrong shapes: {', '.join(wrong)}")
    if problems:
        raise ValueError("; ".join(problems))
