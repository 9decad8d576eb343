"""Rounding weights to int8, rows with a scale each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from model.quantization.rounding import LARGEST

DAMPING = 0.01  # of the mean diagonal, as in the paper
COLUMNS_AT_ONCE, ROWS_AT_ONCE = 64, 4096
UNSIGNED_ZERO = 128  # the unsigned number that stands for zero in a row of activations
GELU_LEAST = 0.171  # the minimum of GELU is -0.16997, of its tanh form -0.17004
GELU_ZERO = 16  # the unsigned number that stands for zero in a GELU's output
GELU_STEPS, GELU_SMALLEST_STEP = 255 - GELU_ZERO, GELU_LEAST / GELU_ZERO


@dataclass(frozen=True, slots=True, eq=False)
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


def quantize_rows(
    weight: NDArray[np.float32],
    gram: NDArray[np.float64] | None = None,
    factors: NDArray[np.float32] | None = None,
) -> QuantizedRows:
    """Round each row to int8 by its own largest magnitude.

    With the inputs' Gram matrix, what rounding one column takes away is made up for by the columns
    that follow (GPTQ: Frantar et al. 2023, algorithm 1), so that the outputs on such inputs change
    least. Without it, each value goes to the nearest step.

    Args:
        weight: (rows, columns) float32, finite; looked at some rows at a time.
        gram: (columns, columns) sum of the inputs' outer products.
        factors: (columns,) that the weight's columns are divided by before rounding, and the inputs
            are multiplied by; columns with the factor 0 become 0.

    Raises:
        ValueError: a value is not finite.
    """
    rounding = None if gram is None else _Compensation(gram, factors)
    values = np.empty(weight.shape, np.int8)
    scales = np.empty(len(weight), np.float32)
    for start in range(0, len(weight), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        rows = weight[some] if factors is None else _divided(weight[some], factors)
        if not np.isfinite(rows).all():
            raise ValueError("a weight is not finite")
        scales[some] = _scales(np.abs(rows).max(axis=1))
        if rounding is None:
            nearest = np.rint(rows / scales[some, None])
            values[some] = nearest.clip(-LARGEST, LARGEST).astype(np.int8)
        else:
            values[some] = rounding.rounded(rows, scales[some])
    return QuantizedRows(values, scales)


def _divided(rows: NDArray[np.float32], factors: NDArray[np.float32]) -> NDArray[np.float32]:
    divided = np.zeros_like(rows)
    np.divide(rows, factors, out=divided, where=factors > 0)
    return divided


def _scales(largest: NDArray[np.float32]) -> NDArray[np.float32]:
    # what is all zeros keeps the scale 1: nothing to divide
    scales: NDArray[np.float32] = np.where(largest > 0, largest / LARGEST, 1).astype(np.float32)
    return scales


class _Compensation:
    """Rounds rows whose inputs have this Gram matrix (columns, columns), times the factors."""

    def __init__(self, gram: NDArray[np.float64], factors: NDArray[np.float32] | None) -> None:
        by = np.ones(len(gram)) if factors is None else factors.astype(np.float64)
        diagonal = np.diag(gram) * by**2
        # channels that are always zero get an arbitrary curvature: their rounding changes nothing
        damping = max(DAMPING * float(diagonal.mean()), 1e-12)
        # the heaviest channels first, while there are columns left to make up for them
        self._order = np.argsort(-diagonal, kind="stable")
        # of 4,096 channels a matrix takes 134 MB: one at a time, or nearly so
        damped = torch.from_numpy(gram[np.ix_(self._order, self._order)])
        by_order = torch.from_numpy(by[self._order])
        damped.mul_(by_order[:, None]).mul_(by_order)
        damped.diagonal().add_(damping)
        lower = torch.linalg.cholesky(damped)
        del damped
        inverse = torch.cholesky_inverse(lower)
        del lower
        self._upper: NDArray[np.float64] = torch.linalg.cholesky(inverse, upper=True).numpy()

    def rounded(self, rows: NDArray[np.float32], scales: NDArray[np.float32]) -> NDArray[np.int8]:
        values = np.empty(rows.shape, np.int8)
        values[:, self._order] = _compensated_rows(rows[:, self._order], scales, self._upper)
        return values


def _compensated_rows(
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
            rounded = np.rint(left[:, column] / steps).clip(-LARGEST, LARGEST)
            values[:, column] = rounded
            error = (left[:, column] - rounded * steps) / upper[column, column]
            left[:, column:stop] -= error[:, None] * upper[column, column:stop]
            errors[:, column - start] = error
        left[:, stop:] -= errors @ upper[start:stop, stop:]
    return values
