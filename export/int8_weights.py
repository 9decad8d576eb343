"""Weights in int8, by a plan of factors and float32 channels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from export.quantize import QuantizedRows, quantize_rows
from model.quantization.calibration import InputStatistics
from model.quantization.rounding_plan import RoundingPlan


@dataclass(frozen=True, slots=True, eq=False)
class Channels:
    """Input channels of a map by how they are computed: int64 indices, ascending.

    Attributes:
        float32: those in float32; there may be none.
        int8: the rest.
    """

    float32: NDArray[np.int64]
    int8: NDArray[np.int64]


class Grams(Mapping[str, NDArray[np.float64]]):
    """The Gram matrices of statistics, which may be computed when they are asked for."""

    def __init__(self, statistics: Mapping[str, InputStatistics]) -> None:
        self._statistics = statistics

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self._statistics[name].gram

    def __iter__(self) -> Iterator[str]:
        return iter(self._statistics)

    def __len__(self) -> int:
        return len(self._statistics)


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
        return quantize_rows(weight, self.grams.get(name), self.factors(name))
