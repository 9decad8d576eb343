"""Encoder and tokenizer of the checkpoint that a fine-tuning starts from."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer

from fillmask_model.checkpoints.checkpoint import Checkpoint, load_checkpoint
from fillmask_model.checkpoints.errors import CheckpointError
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.tokenizers.special_tokens import read_tokenizer


def load_start(directory: Path) -> tuple[Checkpoint, Tokenizer]:
    """Load a checkpoint and its tokenizer, with truncation and padding disabled."""
    checkpoint = load_checkpoint(directory)
    if checkpoint.tokenizer_json is None:
        raise CheckpointError(f"{directory} has no tokenizer; add tokenizer.json")
    tokenizer = read_tokenizer(checkpoint.tokenizer_json)
    vocab_size = checkpoint.model.config.vocab_size
    if tokenizer.get_vocab_size() > vocab_size:
        raise CheckpointError(
            f"{directory}: the tokenizer must have at most {vocab_size} tokens, "
            f"one for each token embedding (got {tokenizer.get_vocab_size()}); use the "
            "checkpoint's own tokenizer"
        )
    return checkpoint, tokenizer


def new_classifier(
    start: TiedEncoder, head: ClassifierConfig, seed: int, *, from_scratch: bool
) -> TiedEncoder:
    """Return an encoder with a new head, and with random weights if it starts from scratch."""
    torch.manual_seed(seed)
    model = TiedEncoder(start.config, head)
    if not from_scratch:
        weights = {n: t for n, t in start.state_dict().items() if not n.startswith("classifier.")}
        model.load_state_dict(weights, strict=False)
    return model
