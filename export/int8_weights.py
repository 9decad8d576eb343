"""Weights in int8, by a plan of factors and float32 channels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from export.quantize import QuantizedRows, quantize_rows
from model.rounding_plan import RoundingPlan


@dataclass(frozen=True, slots=True, eq=False)
class Channels:
    """Input channels of a map by how they are computed: int64 indices, ascending.

    Attributes:
        float32: those in float32; there may be none.
        int8: the rest.
    """

    float32: NDArray[np.int64]
    int8: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Int8Weights:
    """How each map is computed in int8.

    `y = s * (q @ rows.values.T * rows.scales) + x[channels.float32] @ float_weight.T`, where q are
    the rounded rows of `x * factors` and s the rows' scales.

    Attributes:
        plan: factors by the map's name.
        grams: (in, in) the inputs' Gram matrices by the map's name; none where training has left
            the weights on their grid.
    """

    plan: RoundingPlan
    grams: Mapping[str, NDArray[np.float64]]

    def factors(self, name: str) -> NDArray[np.float32]:
        """(in,); zero for the channels in float32."""
        factors: NDArray[np.float32] = self.plan.factors[name].numpy()
        return factors

    def channels(self, name: str) -> Channels:
        """Which of a map's input channels are computed how."""
        factors = self.factors(name)
        return Channels(np.flatnonzero(factors == 0), np.flatnonzero(factors > 0))

    def rows(self, name: str, weight: NDArray[np.float32]) -> QuantizedRows:
        """A map (out, in) over its factors, rounded; zero for the channels in float32."""
        factors = self.factors(name)
        equalized = np.zeros_like(weight)
        np.divide(weight, factors, out=equalized, where=factors > 0)
        gram = self.grams.get(name)
        # the Gram matrix of the inputs as they will be rounded
        return quantize_rows(equalized, None if gram is None else gram * factors[:, None] * factors)
