"""Reader and writer of checkpoints.

Fillmask's own checkpoint is a directory with config.json, model.safetensors and tokenizer.json. Its
config.json contains `"model_type": "fillmask"`. The reader converts Hugging Face checkpoints with
the mapping of their family. The reader never executes code of a checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from fillmask_model.checkpoints.assembly import assemble
from fillmask_model.checkpoints.families.family import Family
from fillmask_model.checkpoints.families.reading import check_family_config, read_family_config
from fillmask_model.checkpoints.families.registry import FAMILIES
from fillmask_model.checkpoints.families.tensors import encoder_tensors, stored_name
from fillmask_model.checkpoints.tensor_files import TensorFiles
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import HEAD_PREFIXES, TiedEncoder
from fillmask_model.files import atomic_replace, read_object
from fillmask_model.quantization.rounding_plan import RoundingPlan
from fillmask_model.tokenizers.loading import read_tokenizer_files

OWN_MODEL_TYPE = "fillmask"
CONFIG_NAME = "config.json"
FILES = (CONFIG_NAME, "tokenizer.json", "model.safetensors")  # in the order of `save_checkpoint`
FILL_MASK, TEXT_CLASSIFICATION = "fill-mask", "text-classification"
ROUNDING = "rounding."  # name prefix of rounding factors in model.safetensors


class CheckpointError(ValueError):
    """Failure to read, export or train a checkpoint, with a message of one line for the user."""

    def __init__(self, text: str) -> None:
        # the name of a field may end a line or control a terminal
        escaped = [one if one.isprintable() else ascii(one)[1:-1] for one in text]
        super().__init__("".join(escaped))


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Encoder and tokenizer of a checkpoint.

    Attributes:
        model: encoder on the CPU, in float32 and in evaluation mode.
        tokenizer_json: content of a complete tokenizer.json. None for a checkpoint without a
            tokenizer.
        head_is_new: True for a checkpoint without a masked-language-model head. The model then has
            a new, random head.
        rounding: smoothing factors of weights that training has rounded to int8. None for unrounded
            weights.
        mask_token: text of the mask token. None for a checkpoint without a tokenizer.
    """

    model: TiedEncoder
    tokenizer_json: bytes | None
    head_is_new: bool
    rounding: RoundingPlan | None = None
    mask_token: str | None = None

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks for which the checkpoint has a trained head."""
        fills = () if self.head_is_new else (FILL_MASK,)
        labels = () if self.model.classifier is None else (TEXT_CLASSIFICATION,)
        return fills + labels

    def require_head(self) -> None:
        """Reject a checkpoint without a trained masked-language-model head.

        Raises:
            CheckpointError: `head_is_new` is True.
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
    *,
    fills: bool = True,
) -> None:
    """Write a checkpoint in fillmask's own format.

    A tied embedding table is one tensor of model.safetensors.

    Args:
        directory: target directory, created if necessary.
        rounding: smoothing factors of the rounded weights. None for unrounded weights.
        fills: whether to store the masked-language-model head.

    Raises:
        ValueError: fills is False for an encoder without a classification head.
    """
    if not fills and model.classifier is None:
        raise ValueError(
            "fills must be True for an encoder without a classification head (got False)"
        )
    directory.mkdir(parents=True, exist_ok=True)
    fields = {"model_type": OWN_MODEL_TYPE, **model.config.to_dict()}
    if model.classifier is not None:
        fields["classifier"] = model.classifier.config.to_dict()
    if not fills:
        fields["tasks"] = [TEXT_CLASSIFICATION]
    # the configuration first, because it shows that the other files come from fillmask
    with atomic_replace(directory / CONFIG_NAME) as temporary:
        temporary.write_text(json.dumps(fields, indent=2) + "\n")
    with atomic_replace(directory / "tokenizer.json") as temporary:
        temporary.write_bytes(tokenizer_json)
    tensors = {
        name: tensor.contiguous().cpu()
        for name, tensor in model.state_dict().items()
        if fills or not name.startswith(HEAD_PREFIXES)
    }
    if rounding:
        tensors |= {ROUNDING + name: f.clone().cpu() for name, f in rounding.factors.items()}
    # an interrupted save must leave the previous weights readable
    with atomic_replace(directory / "model.safetensors") as temporary:
        save_file(tensors, temporary, metadata={"format": "pt"})


def is_own_checkpoint(directory: Path) -> bool:
    """Return whether `save_checkpoint` has written the configuration in a directory."""
    try:
        return read_object(directory / CONFIG_NAME).get("model_type") == OWN_MODEL_TYPE
    except (ValueError, OSError):
        return False


def load_checkpoint(directory: Path) -> Checkpoint:
    """Read a checkpoint of fillmask or of a known Hugging Face family.

    Raises:
        CheckpointError: a file, the family, a configuration value or a tensor is missing, unknown
            or invalid.
    """
    try:
        return _load(directory)
    except ValueError as error:
        raise CheckpointError(str(error)) from None


def check_config(directory: Path) -> None:
    """Check the config.json of a checkpoint whose weights may be missing.

    Raises:
        CheckpointError: the file, the family or a field is missing, unknown or unsupported.
    """
    try:
        fields = read_object(directory / "config.json")
        model_type = fields.pop("model_type", None)
        with _prefix_errors(directory / "config.json"):
            if model_type == OWN_MODEL_TYPE:
                read_own_config(fields)
            else:
                check_family_config(_family(model_type), fields)
    except ValueError as error:
        raise CheckpointError(str(error)) from None


def read_own_config(fields: Mapping[str, Any]) -> tuple[EncoderConfig, ClassifierConfig | None]:
    """Read the fields of a config.json in fillmask's own format.

    Returns:
        The configurations of the encoder and of its classification head. The second
        configuration is None for a checkpoint without a classification head.

    Raises:
        ValueError: a field is unknown, missing or invalid.
    """
    remaining = dict(fields)
    remaining.pop("model_type", None)
    head, tasks = remaining.pop("classifier", None), remaining.pop("tasks", None)
    config = EncoderConfig.from_dict(remaining)
    if "tasks" in fields and head is None:
        raise ValueError(
            "tasks needs the field classifier, which is missing; add classifier or remove tasks"
        )
    if "tasks" in fields and tasks != [TEXT_CLASSIFICATION]:
        raise ValueError(
            f'tasks must be ["{TEXT_CLASSIFICATION}"] (got {tasks!r}); correct or remove tasks'
        )
    return config, None if head is None else ClassifierConfig.from_dict(head)


def _load(directory: Path) -> Checkpoint:
    fields = read_object(directory / "config.json")
    stored = TensorFiles(directory)
    model_type = fields.pop("model_type", None)
    if model_type == OWN_MODEL_TYPE:
        model, rounding, head_is_new = _load_own(directory, fields, stored)
    else:
        rounding = None
        model, head_is_new = _load_family(directory, model_type, fields, stored)
    tokenizer = read_tokenizer_files(directory, model_type)
    if tokenizer is None:
        return Checkpoint(model.eval(), None, head_is_new, rounding)
    tokenizer_json, mask_token = tokenizer.tokenizer_json, tokenizer.mask_token
    return Checkpoint(model.eval(), tokenizer_json, head_is_new, rounding, mask_token)


def _load_own(
    directory: Path, fields: dict[str, Any], stored: TensorFiles
) -> tuple[TiedEncoder, RoundingPlan | None, bool]:
    """Load a checkpoint in fillmask's own format.

    Returns:
        The encoder, the rounding of its weights, and whether its masked-language-model head is new.
    """
    with _prefix_errors(directory / "config.json"):
        config, classifier = read_own_config(fields)
        head_is_new = "tasks" in fields
    tensors = dict(stored)
    rounding = _pop_rounding(tensors)
    with _prefix_errors(directory):
        model = assemble(config, classifier, tensors, str, head_is_new=head_is_new)
    if rounding:
        with _prefix_errors(f"the rounding of the weights in {directory}"):
            rounding.check(model)
    return model, rounding, head_is_new


def _load_family(
    directory: Path, model_type: object, fields: dict[str, Any], stored: TensorFiles
) -> tuple[TiedEncoder, bool]:
    """Load a checkpoint of a Hugging Face family.

    Returns:
        The encoder and whether its masked-language-model head is new.
    """
    with _prefix_errors(directory / "config.json"):
        found = read_family_config(_family(model_type), fields, stored)
    with _prefix_errors(directory):
        tensors = encoder_tensors(stored, found.family, found.parsed)
        head_is_new = not any(name.startswith(HEAD_PREFIXES) for name in tensors)
        display_name = partial(stored_name, found.family)
        config = found.parsed.config
        model = assemble(config, found.classifier, tensors, display_name, head_is_new=head_is_new)
    return model, head_is_new


@contextmanager
def _prefix_errors(where: object) -> Iterator[None]:
    """Prefix the message of a ValueError with its location."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _family(model_type: object) -> Family:
    family = FAMILIES.get(model_type) if isinstance(model_type, str) else None
    if family is None:
        known = ", ".join([OWN_MODEL_TYPE, *FAMILIES])
        raise ValueError(f"model_type must be one of {known} (got {model_type!r})")
    return family


def _pop_rounding(tensors: dict[str, Tensor]) -> RoundingPlan | None:
    names = [name for name in tensors if name.startswith(ROUNDING)]
    factors = {name.removeprefix(ROUNDING): tensors.pop(name) for name in names}
    return RoundingPlan(factors) if factors else None
