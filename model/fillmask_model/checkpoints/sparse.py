"""Settings of a sparse encoder, from the files of Sentence Transformers or by convention.

A masked-language model without such files has the pooling of SPLADE v2 (maximum, one logarithm).

Shapes: V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from tokenizers import Tokenizer

from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.checkpoints.errors import CheckpointError, checkpoint_errors
from fillmask_model.checkpoints.modules import SparseModules
from fillmask_model.encoder.sparse import (
    ACTIVATIONS,
    STRATEGIES,
    SparsePooling,
    SparseSettings,
)
from fillmask_model.files import check_file, read_object

IDF_FILE, MAIN_FILE = "idf.json", "config_sentence_transformers.json"
WEIGHTS_FILE = "model.safetensors"


def with_sparse_settings(
    checkpoint: Checkpoint, directory: Path, modules: SparseModules | None
) -> Checkpoint:
    """Return a checkpoint whose only task is sparse vectors.

    Args:
        directory: directory of the modules' folders.
        modules: modules of Sentence Transformers. None for a plain masked-language model, which may
            have the weights of queries in idf.json.

    Raises:
        CheckpointError: the checkpoint has no trained masked-language-model head or no tokenizer,
            or a file is missing or invalid, or its setting is not supported.
    """
    checkpoint.require_head()
    if checkpoint.tokenizer_json is None:
        raise CheckpointError("the checkpoint has no tokenizer; add tokenizer.json")
    with checkpoint_errors(directory):
        tokenizer = Tokenizer.from_str(checkpoint.tokenizer_json.decode())
        vocab_size = checkpoint.model.config.vocab_size
        weights = _read_query_weights(directory, modules, tokenizer, vocab_size)
        if modules is None:
            settings = SparseSettings(SparsePooling(), None, weights)
        else:
            pooling = _read_pooling(directory / modules.pooling / "config.json")
            settings = SparseSettings(pooling, _read_dimensions(directory / MAIN_FILE), weights)
    return replace(checkpoint, sparse=settings)


def _read_query_weights(
    directory: Path, modules: SparseModules | None, tokenizer: Tokenizer, vocab_size: int
) -> list[float] | None:
    table = directory / IDF_FILE
    if modules is not None and modules.query_weights is not None:
        file = directory / modules.query_weights / WEIGHTS_FILE
        weights = (
            _read_tensor(file, vocab_size)
            if file.is_file()
            else _read_table(table, tokenizer, vocab_size)
        )
    elif modules is None and table.is_file():
        weights = _read_table(table, tokenizer, vocab_size)
    else:
        return None
    for index in tokenizer.encode("").ids:  # around every query, and never a word of it
        weights[index] = 0.0
    return weights


def _read_pooling(path: Path) -> SparsePooling:
    fields = read_object(path)
    strategy = fields.get("pooling_strategy", STRATEGIES[0])
    activation = fields.get("activation_function", ACTIVATIONS[0])
    for name, value, allowed in (
        ("pooling_strategy", strategy, STRATEGIES),
        ("activation_function", activation, ACTIVATIONS),
    ):
        if value not in allowed:
            raise CheckpointError(
                f"{path}: {name} must be {' or '.join(allowed)} (got {value!r:.100})"
            )
    return SparsePooling(strategy, activation)


def _read_dimensions(path: Path) -> int | None:
    if not path.is_file():
        return None
    fields = read_object(path)
    prompts = fields.get("prompts") or {}
    if not isinstance(prompts, dict) or any(prompts.values()):
        raise CheckpointError(
            f"{path}: prompts must be empty, because a bundle adds no text to its inputs; add them "
            "to the texts that you send, and empty the field"
        )
    most = fields.get("max_active_dims")
    if most is not None and (type(most) is not int or most < 1):
        raise CheckpointError(
            f"{path}: max_active_dims must be null or a whole number of at least 1 (got "
            f"{most!r:.100})"
        )
    return most


def _read_tensor(path: Path, vocab_size: int) -> list[float]:
    """Read the tensor `weight` (V,), which may lack unused rows at the end of the table."""
    check_file(path)
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise CheckpointError(f"{path} is not a safetensors file ({error})") from None
    weight = tensors.get("weight")
    if weight is None or weight.dim() != 1 or len(weight) > vocab_size:
        shape = None if weight is None else tuple(weight.shape)
        raise CheckpointError(
            f"{path} must have the tensor weight of shape ({vocab_size},) (got {shape})"
        )
    weights: list[float] = weight.float().tolist()
    return _checked(weights + [0.0] * (vocab_size - len(weights)), path)


def _read_table(path: Path, tokenizer: Tokenizer, vocab_size: int) -> list[float]:
    fields: dict[str, Any] = read_object(path)
    weights = [0.0] * vocab_size
    for token, weight in fields.items():
        index = tokenizer.token_to_id(token)
        if index is None or index >= vocab_size:
            raise CheckpointError(f"{path} has {token!r:.100}, which is not a token of the model")
        weights[index] = weight
    return _checked(weights, path)


def _checked(weights: list[float], path: Path) -> list[float]:
    for weight in weights:
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not number or not 0 <= weight < math.inf:
            raise CheckpointError(
                f"{path}: a weight must be a number of at least 0 (got {weight!r:.100})"
            )
    return [float(weight) for weight in weights]
