"""Tiny packs for the tests of leases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from fillmask_model.data.corpus import SpecialTokens
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.training.lease.loads import PACKED, PackFields, Rows
from fillmask_model.training.lease.packing import PackOptions, write_pack
from fillmask_model.training.lease.plan import LeasePlan
from tests.model.samples import repetitive_text, small_config

TINY: dict[str, Any] = {
    "row_tokens": 16,
    "packed_rows": 4,
    "short_tokens": 32,
    "short_lengths": (8, 16),
    "learning_rate": 1e-2,
    "warmup_steps": 4,
    "rewarm_steps": 2,
    "decay_share": 0.5,
    "average_decay": 0.5,
    "read_every_steps": 2,
    "evaluation_rows": 4,
}


def tiny_plan(**changes: Any) -> LeasePlan:
    """Return a plan with rows of 16 tokens, with changed fields."""
    return LeasePlan(**(TINY | changes))


def tiny_fields(tokenizer: Tokenizer, **changes: Any) -> PackFields:
    """Return the fields of a pack with the tiny plan, with changed fields of the plan."""
    special = SpecialTokens.from_tokenizer(tokenizer)
    config = small_config(vocab_size=tokenizer.get_vocab_size())
    content = tokenizer.to_str().encode()
    return PackFields.of(tiny_plan(**changes), config, special, content, "texts")


def random_rows(fields: PackFields, counts: dict[int, int], seed: int = 0) -> Rows:
    """Return rows of ordinary tokens between two special ones, by the length of the short texts.

    The length 0 stands for packed rows.
    """
    generator = np.random.default_rng(seed)
    ordinary = [i for i in range(fields.encoder.vocab_size) if i not in fields.special]
    ends = [i for i in fields.special if i not in {fields.pad, fields.mask}]
    rows: Rows = {}
    for length, count in counts.items():
        tokens = length or fields.plan.row_tokens
        drawn = generator.choice(ordinary, (count, tokens)).astype(np.uint16)
        drawn[:, 0], drawn[:, -1] = ends[0], ends[1]
        rows[f"short_{length:04}" if length else PACKED] = drawn
    return rows


def write_tiny_pack(
    directory: Path, tokenizer: Tokenizer, load_bytes: int = 48_000, **changes: Any
) -> Path:
    """Pack repeated verses with a small random encoder, and return the directory."""
    directory.mkdir()
    text, held_out = directory / "text.txt", directory / "held_out.txt"
    text.write_text(repetitive_text(300))
    held_out.write_text(repetitive_text(20))
    torch.manual_seed(0)
    write_pack(
        directory / "pack",
        TiedEncoder(small_config(vocab_size=tokenizer.get_vocab_size())),
        tokenizer.to_str().encode(),
        tiny_plan(**changes),
        PackOptions(files=[text], held_out_files=[held_out], load_bytes=load_bytes),
        lambda _: None,
    )
    return directory / "pack"
