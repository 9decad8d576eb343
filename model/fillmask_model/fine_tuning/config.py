"""Hyperparameters and learning rate schedule of fine-tuning."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, Self

from fillmask_model.hyperparameters import add_flags, check_numbers, flag, from_flags
from fillmask_model.optimization import add_device_flag, choose_device, learning_rate

LEAST_TOKENS = 8  # the special tokens of a pair and some words


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuneConfig:
    """Hyperparameters of fine-tuning.

    Each field is a flag of the command with the help text that follows its default.
    """

    may_be_zero: ClassVar[Collection[str]] = ("seed", "warmup_share", "weight_decay")
    shares: ClassVar[Collection[str]] = ("warmup_share",)  # numbers below 1

    epochs: int = flag(10, "number of passes over the training rows")
    batch_rows: int = flag(16, "number of rows in one batch")
    learning_rate: float = flag(1e-4, "peak learning rate")
    # Devlin et al. 2019, appendix A.2
    warmup_share: float = flag(
        0.1, "share of the steps with a linear rise to the peak, before a linear decay to zero"
    )
    # Loshchilov & Hutter 2019
    weight_decay: float = flag(0.01, "weight decay of AdamW for matrices, but not for vectors")
    clip_norm: float = flag(1.0, "maximum of the global gradient norm")
    seed: int = flag(0, "seed of new weights, order of rows and dropout")

    def __post_init__(self) -> None:
        check_numbers(self, self.may_be_zero)
        for name in self.shares:
            if not getattr(self, name) < 1:
                raise ValueError(f"{name} must be below 1 (got {getattr(self, name)!r})")

    def learning_rate_at(self, step: int, steps: int) -> float:
        """Return the learning rate of a step, counted from 1, in a run of `steps` steps."""
        warmup = round(self.warmup_share * steps)
        return learning_rate(
            self.learning_rate,
            step,
            warmup_steps=warmup,
            decay_steps=steps - warmup + 1,
            zero_step=steps + 1,
        )

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Add the hyperparameters and the device to a command."""
        add_device_flag(parser)
        add_flags(parser, cls)

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> Self:
        """Return the hyperparameters from the command line."""
        options.device = choose_device(options.device)
        return from_flags(cls, options)


def max_tokens_of(options: argparse.Namespace, max_positions: int) -> int:
    """Return the maximum number of tokens of a text.

    Raises:
        ValueError: --max-tokens is not between 8 and the maximum of the encoder.
    """
    limit: int = max_positions if options.max_tokens is None else options.max_tokens
    if not LEAST_TOKENS <= limit <= max_positions:
        raise ValueError(
            f"--max-tokens must be from {LEAST_TOKENS} to {max_positions}, the maximum of the "
            f"encoder (got {limit})"
        )
    return limit
