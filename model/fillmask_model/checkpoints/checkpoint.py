"""Reader and writer of checkpoints.

Fillmask's own checkpoint is a directory with config.json, model.safetensors and tokenizer.json. Its
config.json contains `"model_type": "fillmask"`. The reader converts Hugging Face checkpoints with
the mapping of their family. The reader never executes code of a checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from fillmask_model.checkpoints.assembly import assemble
from fillmask_model.checkpoints.errors import CheckpointError, checkpoint_errors, prefix_errors
from fillmask_model.checkpoints.mapping.family import Family
from fillmask_model.checkpoints.mapping.reading import read_family_config
from fillmask_model.checkpoints.mapping.tensors import encoder_tensors, stored_name, unwrap
from fillmask_model.checkpoints.registry import find_family
from fillmask_model.checkpoints.tensor_files import TensorFiles, advise_on_form, find_weight_files
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import HEAD_PREFIXES, TiedEncoder
from fillmask_model.encoder.sparse import SparseSettings
from fillmask_model.files import atomic_replace, listed, printable, read_object
from fillmask_model.quantization.rounding_plan import RoundingPlan
from fillmask_model.tokenizers.loading import TokenizerFiles, read_tokenizer_files

OWN_MODEL_TYPE = "fillmask"
CONFIG_NAME = "config.json"
FILES = (CONFIG_NAME, "tokenizer.json", "model.safetensors")  # in the order of `save_checkpoint`
FILL_MASK, TEXT_CLASSIFICATION, SPARSE = "fill-mask", "text-classification", "sparse"
TOKEN_CLASSIFICATION = "token-classification"  # noqa: S105 - a task
UNLIMITED = 10**6  # transformers' model_max_length is above for tokenizers without one
ROUNDING = "rounding."  # name prefix of rounding factors in model.safetensors


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
        sparse: settings of sparse vectors, which are then the only task. None for the tasks of the
            heads.
        notes: what the user should know of the weights, one sentence in one line each.
        reference: the tokenizer in transformers. None for a checkpoint of fillmask.
        max_length: length in tokens to which the published code truncates texts, if the files of
            the tokenizer name one.
        truncates: whether the published code always truncates texts.
    """

    model: TiedEncoder
    tokenizer_json: bytes | None
    head_is_new: bool
    rounding: RoundingPlan | None = None
    mask_token: str | None = None
    sparse: SparseSettings | None = None
    notes: tuple[str, ...] = ()
    reference: Any = None
    max_length: int | None = None
    truncates: bool = False

    @property
    def tasks(self) -> tuple[str, ...]:
        if self.sparse is not None:
            return (SPARSE,)
        fills = () if self.head_is_new else (FILL_MASK,)
        head = self.model.classifier
        return fills + (() if head is None else (_task_of(head.config),))

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
        assert model.classifier is not None  # noqa: S101 - checked above
        fields["tasks"] = [_task_of(model.classifier.config)]
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


def load_checkpoint(directory: Path, name: str = "") -> Checkpoint:
    """Read a checkpoint of fillmask or of a known Hugging Face family.

    Args:
        name: id of the checkpoint's repository. By default the name of the directory.

    Raises:
        CheckpointError: a file, the family, a configuration value or a tensor is missing, unknown
            or invalid.
    """
    # before the weights, whose errors would hide its own
    fields, model_type, family = check_config(directory, name)
    with checkpoint_errors(directory):
        return _load(directory, fields, model_type, family)


def check_config(directory: Path, name: str = "") -> tuple[dict[str, Any], str, Family | None]:
    """Read and check the config.json of a checkpoint whose weights may be missing.

    Args:
        name: id of the checkpoint's repository. By default the name of the directory.

    Returns:
        The fields, the type of the model and its family, None for a checkpoint of fillmask.

    Raises:
        CheckpointError: the file, the family or a field is missing, unknown or unsupported.
    """
    with checkpoint_errors(directory):
        names = [path.name for path in directory.glob("*")]
        if CONFIG_NAME not in names and advise_on_form(names):
            find_weight_files(directory)  # weights of other libraries have no config.json
        fields = read_object(directory / CONFIG_NAME)
        with prefix_errors(directory / "config.json"):
            if fields.get("model_type") == OWN_MODEL_TYPE:
                read_own_config(fields)
                return fields, OWN_MODEL_TYPE, None
            model_type, family = find_family(fields, name or directory.name)
            read_family_config(family, fields, None)
            return fields, model_type, family


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
    if head is None:
        return config, None
    classifier = ClassifierConfig.from_dict(head)
    if "tasks" in fields and tasks != [_task_of(classifier)]:
        raise ValueError(
            f'tasks must be ["{_task_of(classifier)}"] (got {tasks!r}); correct or remove tasks'
        )
    return config, classifier


def _task_of(classifier: ClassifierConfig) -> str:
    return TOKEN_CLASSIFICATION if classifier.pooling == "tokens" else TEXT_CLASSIFICATION


def _load(
    directory: Path, fields: dict[str, Any], model_type: str, family: Family | None
) -> Checkpoint:
    stored, skipped_positions = TensorFiles(directory), 0
    if family is None:
        loaded = _load_own(directory, fields, stored)
    else:
        loaded, skipped_positions = _load_family(directory, family, fields, stored)
    tokenizer = read_tokenizer_files(directory, model_type, own=model_type == OWN_MODEL_TYPE)
    if tokenizer is not None and skipped_positions:
        with prefix_errors(directory / "config.json"):
            _check_padding(tokenizer, skipped_positions - 1)
    if tokenizer is None:
        return loaded
    reference = tokenizer.reference
    longest = None if reference is None else int(reference.model_max_length)
    return replace(
        loaded,
        tokenizer_json=tokenizer.tokenizer_json,
        mask_token=tokenizer.mask_token,
        reference=reference,
        max_length=longest if longest and longest < UNLIMITED else None,
        notes=(*loaded.notes, *map(printable, tokenizer.notes)),
    )


def _load_own(directory: Path, fields: dict[str, Any], stored: TensorFiles) -> Checkpoint:
    """Load a checkpoint in fillmask's own format, without its tokenizer."""
    with prefix_errors(directory / "config.json"):
        config, classifier = read_own_config(fields)
        head_is_new = "tasks" in fields
    tensors = dict(stored)
    rounding = _pop_rounding(tensors)
    with prefix_errors(directory):
        model = assemble(config, classifier, tensors, str, head_is_new=head_is_new)
    if rounding:
        with prefix_errors(f"the rounding of the weights in {directory}"):
            rounding.check(model)
    return Checkpoint(model.eval(), None, head_is_new, rounding)


def _load_family(
    directory: Path, family: Family, fields: dict[str, Any], stored: TensorFiles
) -> tuple[Checkpoint, int]:
    """Load a checkpoint of a Hugging Face family, without its tokenizer.

    Returns:
        The checkpoint, and the number of unused positions at the start of its table.
    """
    with prefix_errors(directory):
        plain = unwrap(stored, family)
    with prefix_errors(directory / "config.json"):
        found = read_family_config(family, fields, plain)
    notes = []
    if wrapped := [name for name in stored if name not in plain]:
        notes.append(f"read {len(wrapped)} tensors without their wrapper, such as {wrapped[0]}")
    with prefix_errors(directory):
        tensors, unused = encoder_tensors(plain, found.family, found.parsed)
        if unused:
            notes.append(f"ignored tensors: {listed(unused)} (no task reads them)")
        head_is_new = not any(name.startswith(HEAD_PREFIXES) for name in tensors)
        display_name = partial(stored_name, found.family)
        config = found.parsed.config
        model = assemble(config, found.classifier, tensors, display_name, head_is_new=head_is_new)
    shown = tuple(map(printable, notes))
    return Checkpoint(model.eval(), None, head_is_new, notes=shown), found.parsed.skipped_positions


def _check_padding(tokenizer: TokenizerFiles, pad_token_id: int) -> None:
    """Check that texts do not begin with the token after whose id RoBERTa's positions start."""
    empty = Tokenizer.from_str(tokenizer.tokenizer_json.decode()).encode("")
    if empty.ids[:1] == [pad_token_id]:
        raise ValueError(
            f"pad_token_id must be the id of the padding token (got {pad_token_id}, the id of "
            f"{empty.tokens[0]}); correct it"
        )


def _pop_rounding(tensors: dict[str, Tensor]) -> RoundingPlan | None:
    names = [name for name in tensors if name.startswith(ROUNDING)]
    factors = {name.removeprefix(ROUNDING): tensors.pop(name) for name in names}
    return RoundingPlan(factors) if factors else None
