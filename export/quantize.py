"""Rounding of weights to int8 with a scale per row and GPTQ's error compensation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from model.quantization.rounding import INT8_MAX

DAMPING = 0.01  # share of the mean of the Gram diagonal, as in the GPTQ paper
COLUMNS_AT_ONCE, ROWS_AT_ONCE = 64, 4096
UNSIGNED_ZERO = 128  # zero point of uint8 activations
GELU_LEAST = 0.171  # the minima of GELU's erf and tanh forms are -0.16997 and -0.17004
GELU_ZERO = 16  # zero point of uint8 GELU outputs
GELU_STEPS, GELU_SMALLEST_STEP = 255 - GELU_ZERO, GELU_LEAST / GELU_ZERO


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedRows:
    """Weight matrix in int8 with a scale per row.

    Attributes:
        values: (rows, columns) int8.
        scales: (rows,) float32. Row r of the matrix is `values[r] * scales[r]`.
    """

    values: NDArray[np.int8]
    scales: NDArray[np.float32]

    def dequantized(self) -> NDArray[np.float32]:
        """Return the matrix (rows, columns) as float32."""
        return self.values.astype(np.float32) * self.scales[:, None]


def quantize_rows(
    weight: NDArray[np.float32],
    gram: NDArray[np.float64] | None = None,
    factors: NDArray[np.float32] | None = None,
) -> QuantizedRows:
    """Round each row to int8, scaled by its largest magnitude.

    With the inputs' Gram matrix, later columns compensate for the rounding errors of earlier
    columns (GPTQ, Frantar et al. 2023, algorithm 1). The compensation minimises the change of the
    outputs for these inputs. Without the matrix, the function rounds each value to the nearest
    step.

    Args:
        weight: (rows, columns) finite float32 values.
        gram: (columns, columns) sum of the inputs' outer products.
        factors: (columns,) smoothing factors, which divide the columns before rounding. Columns
            with factor 0 become 0.

    Raises:
        ValueError: a value is not finite.
    """
    rounding = None if gram is None else _ErrorCompensation(gram, factors)
    values = np.empty(weight.shape, np.int8)
    scales = np.empty(len(weight), np.float32)
    for start in range(0, len(weight), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        rows = weight[some] if factors is None else _divide_columns(weight[some], factors)
        if not np.isfinite(rows).all():
            raise ValueError(
                f"weights must be finite (got NaN or infinity in row {some.start} or a later row)"
            )
        scales[some] = _scales(np.abs(rows).max(axis=1))
        if rounding is None:
            nearest = np.rint(rows / scales[some, None])
            values[some] = nearest.clip(-INT8_MAX, INT8_MAX).astype(np.int8)
        else:
            values[some] = rounding.rounded(rows, scales[some])
    return QuantizedRows(values, scales)


def _divide_columns(rows: NDArray[np.float32], factors: NDArray[np.float32]) -> NDArray[np.float32]:
    divided = np.zeros_like(rows)
    np.divide(rows, factors, out=divided, where=factors > 0)
    return divided


def _scales(largest: NDArray[np.float32]) -> NDArray[np.float32]:
    # the scale of a row of zeros is 1, to avoid a division by 0
    scales: NDArray[np.float32] = np.where(largest > 0, largest / INT8_MAX, 1).astype(np.float32)
    return scales


class _ErrorCompensation:
    """Rounding with error compensation for a Gram matrix (columns, columns) of the inputs."""

    def __init__(self, gram: NDArray[np.float64], factors: NDArray[np.float32] | None) -> None:
        scale = np.ones(len(gram)) if factors is None else factors.astype(np.float64)
        diagonal = np.diag(gram) * scale**2
        # the minimum avoids a singular matrix if all channels are always zero
        damping = max(DAMPING * float(diagonal.mean()), 1e-12)
        # channels with the largest inputs come first, while many columns remain for compensation
        self._order = np.argsort(-diagonal, kind="stable")
        # free each matrix as early as possible, because 4,096 channels take 134 MB per matrix
        damped = torch.from_numpy(gram[np.ix_(self._order, self._order)])
        ordered_scale = torch.from_numpy(scale[self._order])
        damped.mul_(ordered_scale[:, None]).mul_(ordered_scale)
        damped.diagonal().add_(damping)
        lower = torch.linalg.cholesky(damped)
        del damped
        inverse = torch.cholesky_inverse(lower)
        del lower
        self._upper: NDArray[np.float64] = torch.linalg.cholesky(inverse, upper=True).numpy()

    def rounded(self, rows: NDArray[np.float32], scales: NDArray[np.float32]) -> NDArray[np.int8]:
        values = np.empty(rows.shape, np.int8)
        values[:, self._order] = _round_compensated(rows[:, self._order], scales, self._upper)
        return values


def _round_compensated(
    weight: NDArray[np.float32], scales: NDArray[np.float32], upper: NDArray[np.float64]
) -> NDArray[np.float64]:
    left = weight.astype(np.float64)
    steps = scales.astype(np.float64)
    columns = weight.shape[1]
    values = np.empty_like(left)
    for start in range(0, columns, COLUMNS_AT_ONCE):
        stop = min(start + COLUMNS_AT_ONCE, columns)
        errors = np.empty((len(left), stop - start))
        for column in range(start, stop):
            rounded = np.rint(left[:, column] / steps).clip(-INT8_MAX, INT8_MAX)
            values[:, column] = rounded
            error = (left[:, column] - rounded * steps) / upper[column, column]
            left[:, column:stop] -= error[:, None] * upper[column, column:stop]
            errors[:, column - start] = error
        left[:, stop:] -= errors @ upper[start:stop, stop:]
    return values
