"""Encoder and tokenizer of the checkpoint that a fine-tuning starts from."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer

from fillmask_model.checkpoints.checkpoint import Checkpoint, load_checkpoint
from fillmask_model.checkpoints.errors import CheckpointError, prefix_errors
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.encoder.extension import extend_encoder
from fillmask_model.tokenizers.special_tokens import check_vocabulary, read_tokenizer


def load_start(directory: Path) -> tuple[Checkpoint, Tokenizer]:
    """Load a checkpoint and its tokenizer, with truncation and padding disabled."""
    checkpoint = load_checkpoint(directory)
    if checkpoint.tokenizer_json is None:
        raise CheckpointError(f"{directory} has no tokenizer; add tokenizer.json")
    tokenizer = read_tokenizer(checkpoint.tokenizer_json)
    with prefix_errors(directory):
        check_vocabulary(tokenizer, checkpoint.model.config.vocab_size)
    return checkpoint, tokenizer


def new_classifier(
    start: TiedEncoder, head: ClassifierConfig, seed: int, *, from_scratch: bool
) -> TiedEncoder:
    """Return an encoder with a new head, and with random weights if it starts from scratch."""
    torch.manual_seed(seed)
    start.classifier = None  # a head of its own would stay
    return TiedEncoder(start.config, head) if from_scratch else extend_encoder(start, head)
