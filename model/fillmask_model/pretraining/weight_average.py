"""Exponential average of an encoder's weights over the steps of a run.

At a high learning rate, an encoder with the averaged weights is more accurate than an encoder with
the current weights. A run with averaged weights needs no final decay of the learning rate (Polyak
and Juditsky 1992).
"""

from __future__ import annotations

import copy

import torch

from fillmask_model.encoder.encoder import TiedEncoder


class WeightAverage:
    """Exponential moving average of an encoder's weights.

    The average begins with the current weights.

    Args:
        model: encoder in training.
        decay: share in (0, 1) of the average that each step keeps.

    Attributes:
        model: encoder with the averaged weights on the same device.
    """

    def __init__(self, model: TiedEncoder, decay: float) -> None:
        self.model = copy.deepcopy(model).eval().requires_grad_(requires_grad=False)
        self._followed, self._decay = model, decay

    @torch.no_grad()
    def update(self) -> None:
        """Update the average with the current weights."""
        for average, weight in zip(
            self.model.parameters(), self._followed.parameters(), strict=True
        ):
            average.lerp_(weight, 1 - self._decay)
