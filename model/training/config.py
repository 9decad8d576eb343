"""Configuration and learning rate schedule of a pretraining run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

_MAY_BE_ZERO = {
    "average_decay",
    "decay_steps",
    "seed",
    "short_share",
    "warmup_steps",
    "weight_decay",
}


def learning_rate(config: TrainConfig, step: int) -> float:
    """Return the learning rate of a step, counted from 1."""
    rise = step / config.warmup_steps if config.warmup_steps else 1.0
    decay_steps = config.decay_steps or config.steps - config.warmup_steps
    fall = (config.steps - step) / decay_steps
    return config.learning_rate * min(rise, fall, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """Hyperparameters of a pretraining run.

    Each attribute is a flag of `fillmask-train pretrain`.

    Attributes:
        steps: number of optimizer steps.
        row_tokens: length of each packed row, special tokens included.
        batch_rows: number of rows in one batch.
        accumulate_passes: number of batches per step. Each step adds up their gradients.
        learning_rate: peak learning rate.
        warmup_steps: number of steps with a linear rise to the peak.
        decay_steps: number of final steps with a linear decay to zero. 0 for a decay over all steps
            after the warm-up.
        average_decay: share of the weights' exponential average that each step keeps. Evaluation
            and checkpoints use the average (`model.training.weight_average`). 0 without an average.
        weight_decay: weight decay of AdamW for matrices (Loshchilov & Hutter 2019). Vectors have no
            weight decay.
        clip_norm: maximum of the global gradient norm.
        select_rate: share of tokens to predict.
        short_share: share of batches with short texts (`model.data.short_texts`).
        seed: seed of initial weights, order of rows and masking.
        evaluate_every_steps: number of steps between held-out evaluations.
        evaluation_rows: maximum number of held-out rows per evaluation.
        checkpoint_every_steps: number of steps between checkpoints for `--resume`.
        round_weights: whether to train with weights rounded to int8, in a final phase
            (`model.quantization.rounding`).
    """

    steps: int = 10_000
    row_tokens: int = 128
    batch_rows: int = 32
    accumulate_passes: int = 1
    learning_rate: float = 5e-4
    warmup_steps: int = 200
    decay_steps: int = 0
    average_decay: float = 0.0
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    select_rate: float = 0.15
    short_share: float = 0.0
    seed: int = 0
    evaluate_every_steps: int = 500
    evaluation_rows: int = 256
    checkpoint_every_steps: int = 500
    round_weights: bool = False

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            lowest = 0 if field.name in _MAY_BE_ZERO else 1
            if field.type == "int" and (type(value) is not int or value < lowest):
                raise ValueError(
                    f"{field.name} must be a whole number of at least {lowest} (got {value!r})"
                )
            if field.type == "float" and not (value > 0 or (lowest == 0 and value == 0)):
                least = "at least 0" if lowest == 0 else "above 0"
                raise ValueError(f"{field.name} must be {least} (got {value!r})")
        self._check_ranges()
        self._check_schedule()

    def _check_ranges(self) -> None:
        if self.row_tokens < 8:
            raise ValueError(f"row_tokens must be at least 8 (got {self.row_tokens})")
        if not self.select_rate < 1:
            raise ValueError(f"select_rate must be between 0 and 1 (got {self.select_rate!r})")
        if not self.short_share <= 1:
            raise ValueError(f"short_share must be between 0 and 1 (got {self.short_share!r})")
        if not self.average_decay < 1:
            raise ValueError(f"average_decay must be between 0 and 1 (got {self.average_decay!r})")
        if self.average_decay and self.round_weights:
            raise ValueError(
                "average_decay must be 0 with round_weights, because averages are not rounded "
                f"(got {self.average_decay})"
            )

    def _check_schedule(self) -> None:
        if self.warmup_steps >= self.steps:
            raise ValueError(
                f"warmup_steps must be below steps, {self.steps} (got {self.warmup_steps})"
            )
        if self.warmup_steps + self.decay_steps > self.steps:
            raise ValueError(
                f"warmup_steps and decay_steps must be at most {self.steps} together, the number "
                f"of steps (got {self.warmup_steps} and {self.decay_steps})"
            )
