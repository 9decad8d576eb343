"""Hyperparameters and learning rate schedule of fine-tuning."""

from __future__ import annotations

from dataclasses import dataclass

from fillmask_model.training.hyperparameters import check_numbers, flag

_MAY_BE_ZERO = {"dropout", "seed", "warmup_share", "weight_decay"}
_SHARES = {"dropout", "warmup_share"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuneConfig:
    """Hyperparameters of fine-tuning.

    Each field is a flag of `fillmask-train classify` with the help text that follows its default.
    """

    epochs: int = flag(10, "number of passes over the training rows")
    batch_rows: int = flag(16, "number of rows in one batch")
    learning_rate: float = flag(1e-4, "peak learning rate")
    # Devlin et al. 2019, appendix A.2
    warmup_share: float = flag(
        0.1, "share of the steps with a linear rise to the peak, before a linear decay to zero"
    )
    # Loshchilov & Hutter 2019
    weight_decay: float = flag(0.01, "weight decay of AdamW for matrices, but not for vectors")
    dropout: float = flag(0.1, "share of the pooled values that each training step sets to zero")
    clip_norm: float = flag(1.0, "maximum of the global gradient norm")
    seed: int = flag(0, "seed of new weights, order of rows and dropout")

    def __post_init__(self) -> None:
        check_numbers(self, _MAY_BE_ZERO)
        for name in _SHARES:
            if not getattr(self, name) < 1:
                raise ValueError(f"{name} must be below 1 (got {getattr(self, name)!r})")

    def learning_rate_at(self, step: int, steps: int) -> float:
        """Return the learning rate of a step, counted from 1, in a run of `steps` steps."""
        warmup = round(self.warmup_share * steps)
        rise = step / warmup if warmup else 1.0
        fall = (steps - step + 1) / (steps - warmup + 1)
        return self.learning_rate * min(rise, fall, 1.0)
