"""How a linear map is computed in int8 without losing what matters.

Activations get one scale per row at run time; weights one per output. What makes both kinds of
rounding harmless is exact before rounding:
- Equalizing: input channels are multiplied, and weight columns divided, by factors that share the
  range between the two (`export.equalize`).
- The few channels that make the rows' scales largest are computed in float32 (Dettmers et al. 2022,
  section 3, with channels fixed in advance).
- GELU's outputs have no factors, for they would be a product of the widest rows in the graph; more
  of them stay in float32 instead, and the rest are rounded to unsigned numbers: none is below
  -0.171, so 16 of the 256 steps are enough for what is negative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from export.calibration import InputStatistics
from export.equalize import equalizing_factors
from export.quantize import QuantizedRows, quantize_rows

# measured: LOG.md, 2026-11-20
FLOAT_CHANNELS, FLOAT_HIDDEN_CHANNELS = 8, 128


@dataclass(frozen=True, slots=True, eq=False)
class Channels:
    """Input channels of a map by how they are computed: int64 indices, ascending.

    Attributes:
        float32: those in float32; there may be none.
        int8: the rest.
    """

    float32: NDArray[np.int64]
    int8: NDArray[np.int64]

    @classmethod
    def of(cls, statistics: InputStatistics, count: int) -> Channels:
        """One by one, the channel without which the rows' largest magnitudes are smallest.

        Args:
            statistics: of the input on real text.
            count: how many in float32; at most an eighth of all, for a narrow encoder would
                otherwise be mostly float32.
        """
        rows = np.abs(statistics.rows)
        each, width = np.arange(len(rows)), rows.shape[1]
        chosen: list[int] = []
        for _ in range(min(count, width // 8)):
            widest = rows.argmax(axis=1)
            largest = rows[each, widest]
            rows[each, widest] = 0
            gain = np.bincount(widest, largest**2 - rows.max(axis=1) ** 2, width)
            rows[each, widest] = largest
            chosen.append(int(gain.argmax()))
            rows[:, chosen[-1]] = 0
        float32 = np.sort(np.array(chosen, np.int64))
        return cls(float32, np.setdiff1d(np.arange(width), float32))


@dataclass(frozen=True, slots=True, eq=False)
class Int8Linear:
    """A linear map as int8 arithmetic computes it.

    `y = s * (q @ rows.values.T * rows.scales) + x[channels.float32] @ float_weight.T`, where q are
    the rounded rows of `x * factors` and s the rows' scales.

    Attributes:
        factors: (in,) float32; zero for the channels in float32.
        rows: (out, in) int8 with a scale per output.
        channels: which are computed how.
        float_weight: (out, F) float32.
    """

    factors: NDArray[np.float32]
    rows: QuantizedRows
    channels: Channels
    float_weight: NDArray[np.float32]


def plan_linear(
    weight: NDArray[np.float32], statistics: InputStatistics, float_channels: int
) -> Int8Linear:
    """Decide channels and factors, and round the weights.

    Args:
        weight: (out, in), the maps that share the rounded input one under the other.
        statistics: of the input on real text.
        float_channels: how many to compute in float32.
    """
    channels = Channels.of(statistics, float_channels)
    factors = np.zeros(weight.shape[1], np.float32)
    rounded = channels.int8
    factors[rounded] = equalizing_factors(statistics.rows[:, rounded], weight[:, rounded])
    equalized = np.zeros_like(weight)
    equalized[:, rounded] = weight[:, rounded] / factors[rounded]
    # the Gram matrix of the inputs as they will be rounded
    rows = quantize_rows(equalized, statistics.gram * factors[:, None] * factors)
    return Int8Linear(factors, rows, channels, weight[:, channels.float32])


def plan_from_hidden(
    weight: NDArray[np.float32], statistics: InputStatistics, channels: NDArray[np.int64]
) -> QuantizedRows:
    """Round the part of a map (out, d_ff) that reads these channels of a GELU's outputs."""
    gram = statistics.gram[np.ix_(channels, channels)]
    return quantize_rows(weight[:, channels], gram)
