"""Loss of each problem type.

Shapes: N batch, L labels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from torch import Tensor
from torch.nn import functional as F

from fillmask_model.encoder.classifier import ProblemType

Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def make_loss(problem_type: ProblemType, weights: Tensor | None) -> Loss:
    """Return a function that computes the mean loss from logits (N, L) and targets.

    The losses are cross-entropy for one label per text, binary cross-entropy for several labels,
    and squared error for regression.

    Args:
        weights: (L,) class weights. None for equal weights.
    """
    if problem_type == "single_label_classification":
        return partial(F.cross_entropy, weight=weights)
    if problem_type == "multi_label_classification":
        return partial(F.binary_cross_entropy_with_logits, pos_weight=weights)
    return _squared_error


def _squared_error(logits_N1: Tensor, values_N: Tensor) -> Tensor:
    return F.mse_loss(logits_N1.squeeze(1), values_N)
