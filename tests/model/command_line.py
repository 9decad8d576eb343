"""Command lines for the tests of `fillmask-train`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fillmask_model.checkpoints.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from fillmask_model.commands import main
from tests.model.samples import random_encoder, small_config

# an encoder and a run so small that a test takes little time
ENCODER = {"d_model": 16, "num_layers": 1, "num_heads": 2, "d_ff": 16, "max_positions": 16}
QUICK = ("--row-tokens=16", "--batch-rows=4", "--warmup-steps=1", "--device=cpu", "--steps=4")


def pretrain(*arguments: str) -> int:
    """Pretrain on text.txt, with the encoder of encoder.json or with --init."""
    starts = any(argument.startswith("--init") for argument in arguments)
    encoder = () if starts else ("--config=encoder.json",)
    return main(["pretrain", "text.txt", *QUICK, *encoder, *arguments])


def save_small(directory: str, tokenizer_json: bytes | None, **changes: Any) -> Checkpoint:
    """Return a checkpoint with random weights, loaded from its files."""
    fields = {"max_positions": 16, "d_model": 16, "num_heads": 2} | changes
    save_checkpoint(Path(directory), random_encoder(small_config(**fields)), tokenizer_json or b"")
    if tokenizer_json is None:
        Path(directory, "tokenizer.json").unlink()
    return load_checkpoint(Path(directory))
