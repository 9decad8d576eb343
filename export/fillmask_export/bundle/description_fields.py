"""Fields of bundle.json that describe a checkpoint and the files of the bundle."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from fillmask_model.checkpoints.errors import CheckpointError
from fillmask_model.encoder.classifier import ClassificationHead, ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.counting import count_parameters
from fillmask_model.encoder.sparse import SparseSettings
from fillmask_model.tokenizers.special_tokens import read_tokenizer

# published tables have far fewer unused rows, so more unused rows mean a truncated vocabulary
MAX_UNUSED_IDS = 1024


def classification_fields(head: ClassifierConfig) -> dict[str, Any]:
    return {
        "labels": list(head.labels),
        "problem_type": head.problem_type,
        "pooling": head.pooling,
    }


def sparse_fields(settings: SparseSettings) -> dict[str, Any]:
    return {
        "pooling": settings.pooling.strategy,
        "activation": settings.pooling.activation,
        "max_active_dims": settings.max_active_dims,
        "query_weights": settings.query_weights,
    }


def special_tokens(
    tokenizer_json: bytes, mask_token: str, config: EncoderConfig
) -> tuple[list[str], int, list[int]]:
    """Find the special tokens of a tokenizer.

    Returns:
        Their texts, the id of the mask, and all ids with those of unused table rows.

    Raises:
        CheckpointError: the ids do not match the rows of the embedding table.
    """
    tokenizer = read_tokenizer(tokenizer_json)
    used = set(tokenizer.get_vocab().values())
    if max(used) >= config.vocab_size:
        raise CheckpointError(
            f"tokenizer.json must have ids below {config.vocab_size}, the number of rows of the "
            f"embedding table (got {max(used)}); use the checkpoint's own tokenizer"
        )
    unused = set(range(config.vocab_size)) - used
    if len(unused) > MAX_UNUSED_IDS:
        raise CheckpointError(
            f"tokenizer.json must have at least {config.vocab_size - MAX_UNUSED_IDS} tokens for "
            f"{config.vocab_size} rows of the embedding table (got {len(used)}); "
            "use the checkpoint's own tokenizer"
        )
    added = tokenizer.get_added_tokens_decoder()
    special = {token_id: one.content for token_id, one in added.items() if one.special}
    mask_id = tokenizer.token_to_id(mask_token)
    if mask_id is None:
        raise CheckpointError(f"tokenizer.json must contain {mask_token}, the mask token")
    special[mask_id] = mask_token
    return list(special.values()), mask_id, sorted({*special, *unused})


def architecture_fields(
    config: EncoderConfig, classifier: ClassificationHead | None, *, fills: bool
) -> dict[str, Any]:
    """Return the field `architecture`.

    Args:
        fills: whether the bundle has the masked-language-model head.
    """
    sizes = ("d_model", "num_layers", "num_heads", "d_ff", "vocab_size", "max_positions")
    fields: dict[str, Any] = {name: getattr(config, name) for name in sizes}
    counts = count_parameters(config)
    parameters = counts.tied if fills else counts.encoder
    if classifier is not None:
        parameters += sum(parameter.numel() for parameter in classifier.parameters())
    return fields | {"parameters": parameters, "tied": True}


def file_fields(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"sha256": digest, "bytes": file.stat().st_size}
