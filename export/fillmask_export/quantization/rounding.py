"""Rounding of weights to int8 with a scale per row and GPTQ's error compensation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fillmask_model.quantization.rounding import INT8_MAX

DAMPING = 0.01  # share of the mean of the Gram diagonal, as in the GPTQ paper
COLUMNS_AT_ONCE, ROWS_AT_ONCE = 64, 4096
UNSIGNED_ZERO = 128  # zero point of uint8 activations
GELU_LEAST = 0.171  # the minima of GELU's erf and tanh forms are -0.16997 and -0.17004
GELU_ZERO = 16  # zero point of uint8 GELU outputs
GELU_STEPS, GELU_SMALLEST_STEP = 255 - GELU_ZERO, GELU_LEAST / GELU_ZERO

# Gram matrix (columns, columns) of the inputs
Gram = NDArray[np.float32] | NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedRows:
    """Weight matrix in int8 with a scale per row.

    Attributes:
        values: (rows, columns) int8.
        scales: (rows,) float32. Row r of the matrix is `values[r] * scales[r]`.
    """

    values: NDArray[np.int8]
    scales: NDArray[np.float32]


def quantize_rows(
    weight: NDArray[np.float32],
    gram: Gram | None = None,
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
    """Rounding with error compensation for a Gram matrix (columns, columns) of the inputs.

    The columns take turns. Before its turn, each column receives the errors of the earlier columns,
    multiplied by its feedback coefficients. The coefficients come from the decomposition
    `(I + F) D (I + F).T` of the Gram matrix, where F is strictly upper triangular and D is
    diagonal. The result is the result of GPTQ, without its inverse matrices (Chee et al. 2023,
    QuIP, section 3 and theorem 6).
    """

    def __init__(self, gram: Gram, factors: NDArray[np.float32] | None) -> None:
        scale = np.ones(len(gram)) if factors is None else factors.astype(np.float64)
        diagonal = np.diag(gram).astype(np.float64) * scale**2
        # the minimum avoids a singular matrix if all channels are always zero
        damping = max(DAMPING * float(diagonal.mean()), 1e-12)
        # channels with the largest inputs come first, while many columns remain for compensation
        self._order = np.argsort(-diagonal, kind="stable")
        # The reversed order gives an upper triangular matrix. The code frees each matrix as early
        # as possible, because 4,096 channels take 134 MB per matrix.
        last_first = self._order[::-1]
        damped = torch.from_numpy(gram[np.ix_(last_first, last_first)]).to(torch.float64)
        ordered_scale = torch.from_numpy(scale[last_first])
        damped.mul_(ordered_scale[:, None]).mul_(ordered_scale)
        damped.diagonal().add_(damping)
        lower = torch.linalg.cholesky(damped)
        del damped
        lower.div_(lower.diagonal().clone())
        # row i contains the coefficients of column i's errors, for all columns
        self._feedback = lower.to(torch.float32).flip(0, 1)

    def rounded(self, rows: NDArray[np.float32], scales: NDArray[np.float32]) -> NDArray[np.int8]:
        values = np.empty(rows.shape, np.int8)
        columns = torch.from_numpy(np.ascontiguousarray(rows[:, self._order].T))
        compensated = _round_columns(columns, torch.from_numpy(scales), self._feedback)
        values[:, self._order] = compensated.numpy().T
        return values


def _round_columns(weight: Tensor, steps: Tensor, feedback: Tensor) -> Tensor:
    """Round the columns of a weight in turn.

    Args:
        weight: (columns, rows) float32, the transposed weight.
        steps: (rows,) float32 rounding steps.
        feedback: (columns, columns) float32 coefficients.

    Returns:
        (columns, rows) int8.
    """
    compensated = weight.clone()
    values = torch.empty(weight.shape, dtype=torch.int8)
    for start in range(0, len(weight), COLUMNS_AT_ONCE):
        block = compensated[start : start + COLUMNS_AT_ONCE]
        stop = start + len(block)
        errors = torch.empty_like(block)
        for place, column in enumerate(range(start, stop)):
            rounded = (block[place] / steps).round_().clamp_(-INT8_MAX, INT8_MAX)
            values[column] = rounded
            torch.sub(weight[column], rounded.mul_(steps), out=errors[place])
            block[place + 1 :].addr_(feedback[column, column + 1 : stop], errors[place])
        # one matrix product for all later columns
        compensated[stop:].addmm_(feedback[start:stop, stop:].T, errors)
    return values
