"""Configuration of a pretraining run, and its learning rate schedule."""

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
    """Return the learning rate of a step; steps are counted from 1."""
    rise = step / config.warmup_steps if config.warmup_steps else 1.0
    decay_steps = config.decay_steps or config.steps - config.warmup_steps
    fall = (config.steps - step) / decay_steps
    return config.learning_rate * min(rise, fall, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """Hyperparameters of a pretraining run; each is a flag of `fillmask-train pretrain`.

    Attributes:
        steps: optimizer steps of the whole run.
        row_tokens: length of each packed row, special tokens included.
        batch_rows: rows in one pass.
        accumulate_passes: passes whose gradients are summed for one step.
        learning_rate: peak learning rate, reached after warm-up.
        warmup_steps: steps of linear rise to the peak.
        decay_steps: last steps of the run, with linear decay to zero; the peak rate is constant
            until then. 0 for all steps after the warm-up.
        average_decay: decay of the weights' exponential average per step (see
            `model.training.weight_average`); the average is evaluated and saved as the model. 0
            for no average.
        weight_decay: of AdamW, on matrices only (Loshchilov & Hutter 2019).
        clip_norm: largest global gradient norm.
        select_rate: share of tokens to predict.
        short_share: share of passes over short texts (`model.data.short_texts`).
        seed: of initial weights, order of rows and masking.
        evaluate_every_steps: interval of held-out evaluation.
        evaluation_rows: most held-out rows per evaluation.
        checkpoint_every_steps: interval of checkpoints that `--resume` continues from.
        round_weights: compute with weights rounded to int8, for a last phase
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
                    f"{field.name} must be a whole number of at least {lowest}, not {value!r}"
                )
            if field.type == "float" and not (value > 0 or (lowest == 0 and value == 0)):
                raise ValueError(f"{field.name} must be positive, not {value!r}")
        self._check_ranges()
        self._check_schedule()

    def _check_ranges(self) -> None:
        if self.row_tokens < 8:
            raise ValueError(f"row_tokens must be at least 8, not {self.row_tokens}")
        if not self.select_rate < 1:
            raise ValueError(f"select_rate must be between 0 and 1, not {self.select_rate!r}")
        if not self.short_share <= 1:
            raise ValueError(f"short_share must be between 0 and 1, not {self.short_share!r}")
        if not self.average_decay < 1:
            raise ValueError(f"average_decay must be between 0 and 1, not {self.average_decay!r}")
        if self.average_decay and self.round_weights:
            raise ValueError("average_decay must be 0 with round_weights: averages are not rounded")

    def _check_schedule(self) -> None:
        if self.warmup_steps >= self.steps:
            raise ValueError(
                f"warmup_steps ({self.warmup_steps}) must be fewer than steps ({self.steps})"
            )
        if self.warmup_steps + self.decay_steps > self.steps:
            raise ValueError(
                f"warmup_steps ({self.warmup_steps}) and decay_steps ({self.decay_steps}) "
                f"must not exceed steps ({self.steps})"
            )
