"""Hyperparameters of a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fillmask_model.fine_tuning.config import FineTuneConfig
from fillmask_model.hyperparameters import flag


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifyConfig(FineTuneConfig):
    """Hyperparameters of `fillmask-train classify`."""

    may_be_zero: ClassVar = (*FineTuneConfig.may_be_zero, "dropout")
    shares: ClassVar = (*FineTuneConfig.shares, "dropout")

    dropout: float = flag(0.1, "share of the pooled values that each training step sets to zero")
