"""Rounding of weights to int8, with GPTQ's compensation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from fillmask_export.quantization.rounding import (
    GELU_SMALLEST_STEP,
    GELU_STEPS,
    GELU_ZERO,
    ROWS_AT_ONCE,
    quantize_rows,
)
from tests.model.oracle import Floats, gelu_erf, gelu_tanh


def test_error_is_at_most_half_a_step() -> None:
    weight = np.random.default_rng(0).normal(size=(40, 30)).astype(np.float32)
    weight *= np.geomspace(1e-6, 1e3, 40, dtype=np.float32)[:, None]
    for gram in (None, np.zeros((30, 30))):  # also for channels that are never used
        rows = quantize_rows(weight, gram)
        assert rows.values.dtype == np.int8
        error = np.abs(rows.values * rows.scales[:, None] - weight)
        assert (error <= 0.5001 * rows.scales[:, None]).all()
    zeros = quantize_rows(np.zeros((2, 3), np.float32))
    assert (zeros.values == 0).all()
    assert (zeros.scales == 1).all()


def test_the_largest_of_a_row_becomes_127() -> None:
    # The range is symmetric, so -128 does not occur.
    rows = quantize_rows(np.array([[0.1, -2.0], [3.0, 1.0]], np.float32))
    assert rows.values.tolist() == [[6, -127], [127, 42]]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_weight_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        quantize_rows(np.array([[1.0, value]], np.float32))


def test_compensation_goes_row_by_row() -> None:
    # The rows fill more than one block. Each row gets the same result as alone.
    generator = np.random.default_rng(5)
    weight = generator.normal(size=(ROWS_AT_ONCE + 3, 6)).astype(np.float32)
    mixing = generator.normal(size=(6, 6))
    every = quantize_rows(weight, mixing @ mixing.T).values
    for row in (0, ROWS_AT_ONCE - 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 2):
        alone = quantize_rows(weight[row : row + 1], mixing @ mixing.T).values
        np.testing.assert_array_equal(every[row], alone[0])


def _gptq(weight: NDArray[np.float64], gram: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round a weight by algorithm 1 of Frantar et al. (2023) in float64, a column at a time."""
    order = np.argsort(-np.diag(gram), kind="stable")
    damped = gram[np.ix_(order, order)] + 0.01 * np.diag(gram).mean() * np.eye(len(gram))
    upper = np.linalg.cholesky(np.linalg.inv(damped)).T
    steps = np.abs(weight).max(axis=1) / 127
    left, values = weight[:, order].copy(), np.empty_like(weight)
    for column, place in enumerate(order):
        values[:, place] = np.rint(left[:, column] / steps).clip(-127, 127)
        error = (left[:, column] - values[:, place] * steps) / upper[column, column]
        left[:, column:] -= np.outer(error, upper[column, column:])
    return values


def test_compensation_is_gptq() -> None:
    # Columns fill several blocks. Rounding in float32 may change the few values near a tie.
    generator = np.random.default_rng(6)
    mixing = generator.normal(size=(200, 200)) * np.geomspace(1, 0.01, 200)
    weight = generator.normal(size=(30, 200)).astype(np.float32)
    gram = mixing.T @ mixing
    expected = _gptq(weight.astype(np.float64), gram)
    found = quantize_rows(weight, gram).values
    assert (found != quantize_rows(weight).values).mean() > 0.2  # precondition of the test
    assert (found != expected).mean() < 0.01
    assert np.abs(found - expected).max() <= 1


def test_compensation_is_for_the_smoothed_inputs() -> None:
    # Factors divide the columns of the weight and multiply the inputs.
    generator = np.random.default_rng(7)
    mixing = generator.normal(size=(60, 60)) * np.geomspace(1, 0.1, 60)
    factors = generator.permutation(np.geomspace(0.1, 10, 60)).astype(np.float32)
    weight = generator.normal(size=(30, 60)).astype(np.float32)
    gram = mixing.T @ mixing
    found = quantize_rows(weight, gram, factors).values
    expected = quantize_rows(weight / factors, gram * np.outer(factors, factors)).values
    assert (found != quantize_rows(weight, None, factors).values).mean() > 0.1  # precondition
    assert (found != expected).mean() < 0.01


@pytest.mark.parametrize("gelu", [gelu_erf, gelu_tanh])
def test_a_gelus_minimum_is_a_byte(gelu: Callable[[Floats], Floats]) -> None:
    least = gelu(np.linspace(-3, 3, 60_001)).min()
    assert 0 <= least / GELU_SMALLEST_STEP + GELU_ZERO < 0.1
    assert GELU_STEPS + GELU_ZERO == 255
