"""Hyperparameters of fine-tuning, which are flags of its commands, and its learning rate."""

from __future__ import annotations

from dataclasses import dataclass

from fillmask_model.hyperparameters import Hyperparameters, flag
from fillmask_model.optimization import learning_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuneConfig(Hyperparameters):
    epochs: int = flag(10, "number of passes over the training rows")
    batch_rows: int = flag(16, "number of rows in one batch")
    learning_rate: float = flag(1e-4, "peak learning rate")
    # Devlin et al. 2019, appendix A.2
    warmup_share: float = flag(
        0.1,
        "share of the steps with a linear rise to the peak, before a linear decay to zero",
        least=0,
        below=1,
    )

    def learning_rate_at(self, step: int, steps: int) -> float:
        """Return the learning rate of a step, counted from 1, in a run of `steps` steps."""
        warmup_steps = round(self.warmup_share * steps)
        return learning_rate(
            self.learning_rate,
            step,
            warmup_steps=warmup_steps,
            decay_steps=steps - warmup_steps + 1,
            zero_step=steps + 1,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifyConfig(FineTuneConfig):
    dropout: float = flag(
        0.1, "share of the head's inputs that each training step sets to zero", least=0, below=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseConfig(FineTuneConfig):
    epochs: int = flag(5, "number of passes over the training pairs")
    batch_rows: int = flag(
        32, "number of pairs in one batch, whose documents are also each other's wrong answers"
    )
    # Formal et al. 2021 (v2), section 3.2
    query_penalty: float = flag(3e-3, "weight of the penalty on the words of queries", least=0)
    document_penalty: float = flag(1e-3, "weight of the penalty on the words of documents", least=0)
    penalty_share: float = flag(
        0.3,
        "share of the steps with a quadratic rise of the penalties to their weights",
        least=0,
        below=1,
    )

    def penalty_at(self, step: int, steps: int) -> float:
        """Return the factor of the penalties at a step, counted from 1."""
        rise = round(self.penalty_share * steps)
        return min(1.0, (step / rise) ** 2) if rise else 1.0
