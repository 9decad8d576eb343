"""Rounding of weights to int8, with GPTQ's compensation, and of inputs with outlier channels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fillmask_export.quantization.rounding import (
    GELU_SMALLEST_STEP,
    GELU_ZERO,
    ROWS_AT_ONCE,
    QuantizedRows,
    quantize_rows,
)
from fillmask_export.quantization.weights import Int8Weights
from fillmask_model.quantization.input_recorder import InputStatistics
from fillmask_model.quantization.rounding_plan import RoundingPlan, choose_float_channels
from fillmask_model.quantization.smoothing import smoothing_factors
from tests.model.oracle import gelu_tanh

Floats = NDArray[np.float64]
NAME = "map"


def test_error_is_at_most_half_a_step() -> None:
    weight = np.random.default_rng(0).normal(size=(40, 30)).astype(np.float32)
    weight *= np.geomspace(1e-6, 1e3, 40, dtype=np.float32)[:, None]
    rows = quantize_rows(weight)
    assert rows.values.dtype == np.int8
    error = np.abs(rows.dequantized() - weight)
    assert (error <= 0.5001 * rows.scales[:, None]).all()
    # also for channels that are never used, and for rows of zeros
    unused = quantize_rows(weight, np.zeros((30, 30)))
    assert (np.abs(unused.dequantized() - weight) <= 0.5001 * rows.scales[:, None]).all()
    zeros = quantize_rows(np.zeros((2, 3), np.float32))
    assert (zeros.dequantized() == 0).all()
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


def _inputs() -> Floats:
    """Return rows in which a few channels have far larger values, as in encoders."""
    return np.random.default_rng(0).normal(size=(400, 96)) * np.where(
        np.arange(96) % 31 == 3, 40, 1
    )


def _weight() -> NDArray[np.float32]:
    return np.random.default_rng(1).normal(size=(40, 96)).astype(np.float32)


def _int8(x: Floats, float_channels: int, *, smoothed: bool = True) -> Int8Weights:
    statistics = InputStatistics(x.T @ x, x[::2].astype(np.float32))
    in_int8 = np.ones(96, np.bool_)
    in_int8[choose_float_channels(statistics, float_channels)] = False
    factors = in_int8.astype(np.float32)
    if smoothed:
        found = smoothing_factors(statistics.rows[:, in_int8], _weight()[:, in_int8])
        factors[in_int8] = found
    return Int8Weights(RoundingPlan({NAME: torch.from_numpy(factors)}), {NAME: statistics.gram}.get)


def _product(x: Floats, int8: Int8Weights, rows: QuantizedRows) -> Floats:
    """Compute a matrix product of the int8 graph in float64."""
    y = x * int8.factors(NAME)
    scale = np.abs(y).max(axis=1, keepdims=True) / 127
    channels = int8.float_channels(NAME)
    product: Floats = np.rint(y / scale) * scale @ rows.dequantized().T.astype(np.float64)
    return product + x[:, channels] @ _weight()[:, channels].T


def test_rounded_rows_come_close() -> None:
    # The error is below 1 % and below half of the error of plain rounding.
    x = _inputs()
    exact = x @ _weight().T
    int8 = _int8(x, 8)
    y = _product(x, int8, int8.rows(NAME, _weight()))
    plain_scale = np.abs(x).max(axis=1, keepdims=True) / 127
    plain = np.rint(x / plain_scale) * plain_scale @ _weight().T
    error, plain_error = (np.linalg.norm(z - exact) / np.linalg.norm(exact) for z in (y, plain))
    assert error < 0.01
    assert error < 0.5 * plain_error


def test_float_channels_have_no_part_in_the_rounded_product() -> None:
    int8 = _int8(_inputs(), 3)
    float32, in_int8 = int8.float_channels(NAME), int8.int8_channels(NAME)
    np.testing.assert_array_equal(float32, [3, 34, 65])
    assert sorted([*float32, *in_int8]) == list(range(96))
    values = int8.rows(NAME, _weight()).values
    assert not values[:, float32].any()
    assert values[:, in_int8].any(axis=0).all()


def test_a_gelus_outputs_come_close() -> None:
    # The zero point of GELU's outputs is 16. GELU's minimum sets the smallest step.
    x = gelu_tanh(_inputs())
    int8 = _int8(x, 12, smoothed=False)
    channels = int8.int8_channels(NAME)
    rows = int8.rows(NAME, _weight()).dequantized()[:, channels]
    y = x[:, channels]
    scale = np.maximum(y.max(axis=1, keepdims=True) / (255 - GELU_ZERO), GELU_SMALLEST_STEP)
    rounded = np.rint(y / scale) + GELU_ZERO
    assert rounded.min() >= 0
    assert rounded.max() <= 255
    exact = y @ _weight()[:, channels].T
    error = np.linalg.norm((rounded - GELU_ZERO) * scale @ rows.T - exact)
    assert error < 0.01 * np.linalg.norm(exact)
