"""Hyperparameters of a sparse encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fillmask_model.fine_tuning.config import FineTuneConfig
from fillmask_model.hyperparameters import flag


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseConfig(FineTuneConfig):
    """Hyperparameters of `fillmask-train sparse`."""

    may_be_zero: ClassVar = (
        *FineTuneConfig.may_be_zero,
        "query_penalty",
        "document_penalty",
        "penalty_share",
    )
    shares: ClassVar = (*FineTuneConfig.shares, "penalty_share")

    epochs: int = flag(5, "number of passes over the training pairs")
    batch_rows: int = flag(
        32, "number of pairs in one batch, whose documents are also each other's wrong answers"
    )
    # Formal et al. 2021 (v2), section 3.2
    query_penalty: float = flag(3e-3, "weight of the penalty on the words of queries")
    document_penalty: float = flag(1e-3, "weight of the penalty on the words of documents")
    penalty_share: float = flag(
        0.3, "share of the steps with a quadratic rise of the penalties to their weights"
    )

    def penalty_at(self, step: int, steps: int) -> float:
        """Return the factor of the penalties at a step, counted from 1."""
        rise = round(self.penalty_share * steps)
        return min(1.0, (step / rise) ** 2) if rise else 1.0
