"""Rounding weights to int8: rows with a scale each, and the embedding table in blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LARGEST = 127  # symmetric: -128 is not used, so that no zero point is needed
DAMPING = 0.01  # of the mean diagonal, as in the paper
COLUMNS_AT_ONCE = 64
UNSIGNED_ZERO = 128
MAX_BLOCK, MIN_BLOCK = 128, 16


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


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedTable:
    """An embedding table as uint8 blocks, in the layout onnxruntime's blockwise operators share.

    Attributes:
        blocks: (V, B, block) uint8; 128 stands for zero; columns beyond D are zero.
        scales: (V, B) float32.
        d_model: D.
    """

    blocks: NDArray[np.uint8]
    scales: NDArray[np.float32]
    d_model: int

    @property
    def block(self) -> int:
        """Columns that share a scale."""
        return int(self.blocks.shape[2])

    def dequantized(self) -> NDArray[np.float32]:
        """The float32 table (V, D) these blocks stand for."""
        values = (self.blocks.astype(np.float32) - UNSIGNED_ZERO) * self.scales[:, :, None]
        return values.reshape(len(values), -1)[:, : self.d_model]


def quantize_rows(
    weight: NDArray[np.float32], gram: NDArray[np.float64] | None = None
) -> QuantizedRows:
    """Round each row to int8 by its own largest magnitude.

    With the inputs' Gram matrix, what rounding one column takes away is made up for by the columns
    that follow (GPTQ: Frantar et al. 2023, algorithm 1), so that the outputs on such inputs change
    least. Without it, each value goes to the nearest step.

    Args:
        weight: (rows, columns) float32, finite.
        gram: (columns, columns) sum of the inputs' outer products.

    Raises:
        ValueError: a value is not finite.
    """
    if not np.isfinite(weight).all():
        raise ValueError("a weight is not finite")
    scales = _scales(np.abs(weight).max(axis=1))
    if gram is None:
        values = np.rint(weight / scales[:, None]).clip(-LARGEST, LARGEST)
    else:
        values = _compensated(weight.astype(np.float64), scales.astype(np.float64), gram)
    return QuantizedRows(values.astype(np.int8), scales)


def quantize_table(table: NDArray[np.float32]) -> QuantizedTable:
    """Round an embedding table (V, D) to uint8 in blocks of up to 128 columns.

    Raises:
        ValueError: a value is not finite.
    """
    if not np.isfinite(table).all():
        raise ValueError("a weight is not finite")
    V, D = table.shape
    block = MAX_BLOCK
    while block > MIN_BLOCK and D % block:
        block //= 2
    padded = np.pad(table, ((0, 0), (0, -D % block))).reshape(V, -1, block)
    scales = _scales(np.abs(padded).max(axis=2))
    values = np.rint(padded / scales[:, :, None]).clip(-LARGEST, LARGEST) + UNSIGNED_ZERO
    return QuantizedTable(values.astype(np.uint8), scales, D)


def _scales(largest: NDArray[np.float32]) -> NDArray[np.float32]:
    # what is all zeros keeps the scale 1: nothing to divide
    scales: NDArray[np.float32] = np.where(largest > 0, largest / LARGEST, 1).astype(np.float32)
    return scales


def _compensated(
    weight: NDArray[np.float64], scales: NDArray[np.float64], gram: NDArray[np.float64]
) -> NDArray[np.float64]:
    columns = weight.shape[1]
    # channels that are always zero get an arbitrary curvature: their rounding changes nothing
    damped = gram + np.eye(columns) * max(DAMPING * float(np.diag(gram).mean()), 1e-12)
    # the heaviest channels first, while there are columns left to make up for them
    order = np.argsort(-np.diag(damped), kind="stable")
    weight = weight[:, order].copy()
    upper = np.linalg.cholesky(np.linalg.inv(damped[order][:, order])).T
    values = np.empty_like(weight)
    for start in range(0, columns, COLUMNS_AT_ONCE):
        stop = min(start + COLUMNS_AT_ONCE, columns)
        errors = np.empty((len(weight), stop - start))
        for column in range(start, stop):
            rounded = np.rint(weight[:, column] / scales).clip(-LARGEST, LARGEST)
            values[:, column] = rounded
            error = (weight[:, column] - rounded * scales) / upper[column, column]
            weight[:, column:stop] -= error[:, None] * upper[column, column:stop]
            errors[:, column - start] = error
        weight[:, stop:] -= errors @ upper[start:stop, stop:]
    restored = np.empty_like(values)
    restored[:, order] = values
    return restored
