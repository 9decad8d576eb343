"""Fields of bundle.json that describe a checkpoint and the files of the bundle."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from fillmask_model.checkpoints.checkpoint import FILL_MASK, SPARSE, Checkpoint
from fillmask_model.checkpoints.errors import CheckpointError
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.empty import count_parameters
from fillmask_model.files import atomic_replace
from fillmask_model.tokenizers.special_tokens import read_tokenizer

# published tables have far fewer unused rows, so more unused rows mean a truncated vocabulary
MAX_UNUSED_IDS = 1024


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


def architecture_fields(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the field `architecture`, with the number of parameters that the tasks need."""
    model, tasks = checkpoint.model, checkpoint.tasks
    sizes = ("d_model", "num_layers", "num_heads", "d_ff", "vocab_size", "max_positions")
    fields: dict[str, Any] = {name: getattr(model.config, name) for name in sizes}
    counts = count_parameters(model.config)
    fills_or_vectors = {FILL_MASK, SPARSE} & {*tasks}
    parameters = counts.tied if fills_or_vectors else counts.encoder
    if model.classifier is not None and SPARSE not in tasks:
        parameters += sum(parameter.numel() for parameter in model.classifier.parameters())
    return fields | {"parameters": parameters, "tied": True}


def file_fields(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"sha256": digest, "bytes": file.stat().st_size}


def write_description(description: dict[str, Any], file: Path) -> None:
    text = json.dumps(description, indent=2, ensure_ascii=False)
    with atomic_replace(file) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
