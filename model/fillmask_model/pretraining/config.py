"""Configuration and learning rate schedule of a pretraining run."""

from __future__ import annotations

from dataclasses import dataclass

from fillmask_model.hyperparameters import Hyperparameters, flag
from fillmask_model.optimization import learning_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig(Hyperparameters):
    steps: int = flag(10_000, "number of optimizer steps")
    row_tokens: int = flag(
        128, "length of each packed row in tokens, special tokens included", least=8
    )
    accumulate_passes: int = flag(1, "number of batches per step, whose gradients the step adds up")
    warmup_steps: int = flag(200, "number of steps with a linear rise to the peak", least=0)
    decay_steps: int = flag(
        0,
        "number of final steps with a linear decay to zero, or 0 for a decay over all steps after "
        "the warm-up",
        least=0,
    )
    select_rate: float = flag(0.15, "share of tokens to predict", below=1)
    # fillmask_model.pretraining.short_texts
    short_share: float = flag(0.0, "share of batches with short texts", least=0)
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
        Hyperparameters.__post_init__(self)
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
        if self.warmup_steps >= self.steps:
            raise ValueError(
                f"warmup_steps must be below steps, {self.steps} (got {self.warmup_steps})"
            )
        if self.warmup_steps + self.decay_steps > self.steps:
            raise ValueError(
                f"the sum of warmup_steps and decay_steps must be at most steps, {self.steps} "
                f"(got {self.warmup_steps} and {self.decay_steps})"
            )

    def learning_rate_at(self, step: int) -> float:
        """Return the learning rate of a step, counted from 1."""
        return learning_rate(
            self.learning_rate,
            step,
            warmup_steps=self.warmup_steps,
            decay_steps=self.decay_steps or self.steps - self.warmup_steps,
            zero_step=self.steps,
        )
