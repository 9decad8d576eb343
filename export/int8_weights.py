"""Int8 weights of linear layers, rounded according to a rounding plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from export.quantize import QuantizedRows, quantize_rows
from model.quantization.input_recorder import InputStatistics
from model.quantization.rounding_plan import RoundingPlan


@dataclass(frozen=True, slots=True, eq=False)
class Channels:
    """Ascending int64 indices of a linear layer's input channels by precision.

    Attributes:
        float32: channels in float32, possibly none.
        int8: all other channels.
    """

    float32: NDArray[np.int64]
    int8: NDArray[np.int64]


class GramMatrices(Mapping[str, NDArray[np.float64]]):
    """Gram matrices by layer, computed at each access."""

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
    """Rounding of each linear layer's weights.

    A layer computes
    `y = s * (q @ rows.values.T * rows.scales) + x[channels.float32] @ float_weight.T`, where q are
    the rounded rows of `x * factors` and s are their scales.

    Attributes:
        plan: factors by the layer's name.
        grams: (in, in) Gram matrices of the inputs by the layer's name. The mapping is empty if
            training has rounded the weights.
    """

    plan: RoundingPlan
    grams: Mapping[str, NDArray[np.float64]]

    def rounds(self, name: str) -> bool:
        """Return whether the plan has factors of a layer."""
        return name in self.plan.factors

    def factors(self, name: str) -> NDArray[np.float32]:
        """Return a layer's factors (in,), with 0 for channels in float32."""
        factors: NDArray[np.float32] = self.plan.factors[name].numpy()
        return factors

    def channels(self, name: str) -> Channels:
        """Return a layer's input channels by precision."""
        factors = self.factors(name)
        return Channels(np.flatnonzero(factors == 0), np.flatnonzero(factors > 0))

    def rows(self, name: str, weight: NDArray[np.float32]) -> QuantizedRows:
        """Divide a weight (out, in) by the layer's factors and round it.

        Columns of float32 channels become 0.
        """
        return quantize_rows(weight, self.grams.get(name), self.factors(name))
