"""Rounding to int8, with an error of at most half a step."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fillmask_export.quantization.rounding import ROWS_AT_ONCE, quantize_rows


def test_error_is_at_most_half_a_step() -> None:
    weight = np.random.default_rng(0).normal(size=(40, 30)).astype(np.float32)
    weight *= np.geomspace(1e-6, 1e3, 40, dtype=np.float32)[:, None]
    rows = quantize_rows(weight)
    assert rows.values.dtype == np.int8
    error = np.abs(rows.dequantized() - weight)
    assert (error <= 0.5001 * rows.scales[:, None]).all()


def test_the_largest_of_a_row_becomes_127() -> None:
    # The range is symmetric, so -128 does not occur.
    rows = quantize_rows(np.array([[0.1, -2.0], [3.0, 1.0]], np.float32))
    assert rows.values.tolist() == [[6, -127], [127, 42]]


def test_a_row_of_zeros_stays_zero() -> None:
    rows = quantize_rows(np.zeros((2, 3), np.float32))
    assert (rows.dequantized() == 0).all()
    assert (rows.scales == 1).all()


def test_rounding_twice_is_rounding_once() -> None:
    weight = np.random.default_rng(1).normal(size=(5, 64)).astype(np.float32)
    once = quantize_rows(weight)
    np.testing.assert_array_equal(quantize_rows(once.dequantized()).values, once.values)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_weight_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        quantize_rows(np.array([[1.0, value]], np.float32))


def test_compensation_brings_the_outputs_nearer() -> None:
    # The Gram matrix and the errors come from the same correlated inputs.
    generator = np.random.default_rng(2)
    mixing = generator.normal(size=(64, 64)) * np.geomspace(1, 0.01, 64)
    inputs = generator.normal(size=(500, 64)) @ mixing
    weight = generator.normal(size=(48, 64)).astype(np.float32)
    exact = inputs @ weight.T
    errors = [
        np.linalg.norm(inputs @ quantize_rows(weight, gram).dequantized().T - exact)
        for gram in (None, inputs.T @ inputs)
    ]
    assert errors[1] < 0.7 * errors[0]


def test_compensation_without_correlation_is_rounding() -> None:
    # Independent inputs leave nothing to compensate.
    weight = np.random.default_rng(3).normal(size=(20, 30)).astype(np.float32)
    compensated = quantize_rows(weight, np.eye(30))
    np.testing.assert_array_equal(compensated.values, quantize_rows(weight).values)


def test_channels_that_are_never_used_do_no_harm() -> None:
    weight = np.random.default_rng(4).normal(size=(5, 8)).astype(np.float32)
    rows = quantize_rows(weight, np.zeros((8, 8)))
    assert (np.abs(rows.dequantized() - weight) <= 0.5001 * rows.scales[:, None]).all()


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
