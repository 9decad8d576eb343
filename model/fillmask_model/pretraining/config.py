"""Configuration and learning rate schedule of a pretraining run."""

from __future__ import annotations

from dataclasses import dataclass

from fillmask_model import optimization
from fillmask_model.hyperparameters import check_numbers, flag

_MAY_BE_ZERO = {
    "decay_steps",
    "seed",
    "short_share",
    "warmup_steps",
    "weight_decay",
}


def learning_rate(config: TrainConfig, step: int) -> float:
    """Return the learning rate of a step, counted from 1."""
    return optimization.learning_rate(
        config.learning_rate,
        step,
        warmup_steps=config.warmup_steps,
        decay_steps=_decay_steps(config),
        zero_step=config.steps,
    )


def _decay_steps(config: TrainConfig) -> int:
    return config.decay_steps or config.steps - config.warmup_steps


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """Hyperparameters of a pretraining run.

    Each field is a flag of `fillmask-train pretrain` with the help text that follows its default.
    """

    steps: int = flag(10_000, "number of optimizer steps")
    row_tokens: int = flag(128, "length of each packed row in tokens, special tokens included")
    batch_rows: int = flag(32, "number of rows in one batch")
    accumulate_passes: int = flag(1, "number of batches per step, whose gradients the step adds up")
    learning_rate: float = flag(5e-4, "peak learning rate")
    warmup_steps: int = flag(200, "number of steps with a linear rise to the peak")
    decay_steps: int = flag(
        0,
        "number of final steps with a linear decay to zero, or 0 for a decay over all steps after "
        "the warm-up",
    )
    # Loshchilov & Hutter 2019
    weight_decay: float = flag(0.01, "weight decay of AdamW for matrices, but not for vectors")
    clip_norm: float = flag(1.0, "maximum of the global gradient norm")
    select_rate: float = flag(0.15, "share of tokens to predict")
    # fillmask_model.pretraining.short_texts
    short_share: float = flag(0.0, "share of batches with short texts")
    seed: int = flag(0, "seed of initial weights, order of rows and masking")
    evaluate_every_steps: int = flag(500, "number of steps between held-out evaluations")
    evaluation_rows: int = flag(256, "maximum number of held-out rows per evaluation")
    checkpoint_every_steps: int = flag(500, "number of steps between checkpoints for --resume")
    # fillmask_model.pretraining.next_sentence
    next_sentence: bool = flag(
        default=False,
        meaning="train on pairs of segments instead of packed rows, and add the loss of BERT's "
        "next-sentence prediction",
    )
    # fillmask_model.quantization.rounding
    round_weights: bool = flag(
        default=False, meaning="train with weights rounded to int8, in a final phase"
    )

    def __post_init__(self) -> None:
        check_numbers(self, _MAY_BE_ZERO)
        self._check_ranges()
        self._check_schedule()

    def _check_ranges(self) -> None:
        if self.row_tokens < 8:
            raise ValueError(f"row_tokens must be at least 8 (got {self.row_tokens})")
        if not self.select_rate < 1:
            raise ValueError(f"select_rate must be below 1 (got {self.select_rate!r})")
        if not self.short_share <= 1:
            raise ValueError(f"short_share must be at most 1 (got {self.short_share!r})")
        if self.next_sentence and self.round_weights:
            raise ValueError(
                "next_sentence and round_weights, which trains on packed rows, exclude each other; "
                "remove one of them"
            )
        if self.next_sentence and self.short_share == 1:
            raise ValueError(
                "short_share must be below 1 with next_sentence, because short texts are not pairs "
                f"(got {self.short_share!r})"
            )

    def _check_schedule(self) -> None:
        if self.warmup_steps >= self.steps:
            raise ValueError(
                f"warmup_steps must be below steps, {self.steps} (got {self.warmup_steps})"
            )
        if self.warmup_steps + self.decay_steps > self.steps:
            raise ValueError(
                f"the sum of warmup_steps and decay_steps must be at most steps, {self.steps} "
                f"(got {self.warmup_steps} and {self.decay_steps})"
            )
