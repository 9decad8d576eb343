"""Symmetric int8 weights with one scale per output row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LARGEST = 127  # symmetric: -128 is not used, so that no zero point is needed


@dataclass(frozen=True, slots=True)
class QuantizedRows:
    """A weight matrix as int8 rows.

    Attributes:
        values: (rows, columns) int8.
        scales: (rows,) float32; row r stands for `values[r] * scales[r]`.
    """

    values: NDArray[np.int8]
    scales: NDArray[np.float32]

    def dequantized(self) -> NDArray[np.float32]:
        """The float32 matrix (rows, columns) these rows stand for."""
        return self.values.astype(np.float32) * self.scales[:, None]


def quantize_rows(weight: NDArray[np.float32]) -> QuantizedRows:
    """Round each row to int8 by its own largest magnitude.

    Args:
        weight: (rows, columns) float32, finite.

    Raises:
        ValueError: a value is not finite.
    """
    if not np.isfinite(weight).all():
        raise ValueError("a weight is not finite")
    largest = np.abs(weight).max(axis=1)
    # a row of zeros keeps the scale 1: nothing to divide
    scales = np.where(largest > 0, largest / LARGEST, 1).astype(np.float32)
    values = np.rint(weight / scales[:, None]).clip(-LARGEST, LARGEST).astype(np.int8)
    return QuantizedRows(values, scales)
