"""How a linear map is computed in int8 without losing what matters.

Activations get one scale per row at run time; weights one per output. Three exact rewritings make
both kinds of rounding harmless:
- Smoothing (Xiao et al. 2023, section 4): input channels are divided, and weight columns
  multiplied, by a factor that shares the range between the two.
- The few input channels with the largest values are taken out and computed in float32 (Dettmers et
  al. 2022, section 3, with channels fixed in advance).
- GELU's outputs are never below -0.171: shifted by that, they use all eight bits. What the shift
  adds to the products is a constant of the bias.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from export.calibration import InputStatistics
from export.quantize import QuantizedRows, quantize_rows

FLOAT_CHANNELS = 16  # measured: LOG.md, 2026-11-20
SMOOTHING = 0.5  # how the range is shared between activations and weights
GELU_SHIFT = 0.171  # the minimum of GELU is -0.16997, of its tanh form -0.17004
SMALLEST = 1e-5


@dataclass(frozen=True, slots=True, eq=False)
class Int8Linear:
    """Linear maps of one input, side by side, as int8 arithmetic computes them.

    `y = s * (q @ values.T * scales) + x[float_channels] @ float_weight.T + bias`, where q are the
    rounded rows of `x * factor + shift` and s the rows' scales.

    Attributes:
        factor: (in,) float32; zero for the channels computed in float32.
        shift: (in,) float32 that makes the rounded input nonnegative; None where it is signed.
        rows: (out, in) int8 with a scale per output.
        float_channels: (F,) int64.
        float_weight: (out, F) float32.
        bias: (out,) float32.
    """

    factor: NDArray[np.float32]
    shift: NDArray[np.float32] | None
    rows: QuantizedRows
    float_channels: NDArray[np.int64]
    float_weight: NDArray[np.float32]
    bias: NDArray[np.float32]


def plan_linear(
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    statistics: InputStatistics,
    *,
    from_gelu: bool,
) -> Int8Linear:
    """Decide factors and channels, and round the weights.

    Args:
        weight: (out, in), the maps of one input one under the other.
        bias: (out,).
        statistics: of the input on real text.
        from_gelu: the input is a GELU's output.
    """
    channels = weight.shape[1]
    # at most a quarter: a narrow encoder would otherwise be all float32
    count = min(FLOAT_CHANNELS, channels // 4)
    float_channels = np.sort(np.argsort(-statistics.largest, kind="stable")[:count])
    rounded = np.ones(channels, bool)
    rounded[float_channels] = False

    share = np.maximum(statistics.largest, SMALLEST) ** SMOOTHING
    share = share / np.maximum(np.abs(weight).max(axis=0), SMALLEST) ** (1 - SMOOTHING)
    share = share / np.exp(np.log(share).mean())
    factor = np.where(rounded, 1 / share, 0)
    smoothed = np.where(rounded, weight * share, 0).astype(np.float32)
    # the Gram matrix of the inputs as they will be rounded
    rows = quantize_rows(smoothed, statistics.gram * factor[:, None] * factor)

    shift = None
    if from_gelu:
        shift = (GELU_SHIFT * factor).astype(np.float32)
        bias = (bias - rows.dequantized().astype(np.float64) @ shift).astype(np.float32)
    return Int8Linear(
        factor=factor.astype(np.float32),
        shift=shift,
        rows=rows,
        float_channels=float_channels.astype(np.int64),
        float_weight=np.ascontiguousarray(weight[:, float_channels]),
        bias=bias,
    )
