"""Changes of weights before rounding and rounding errors with outlier channels."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from fillmask_export.quantization.rounding import GELU_SMALLEST_STEP, GELU_ZERO, QuantizedRows
from fillmask_export.quantization.weights import Int8Weights
from fillmask_model.quantization.input_recorder import InputStatistics
from fillmask_model.quantization.rounding_plan import RoundingPlan, choose_float_channels
from fillmask_model.quantization.smoothing import smoothing_factors
from tests.model.oracle import gelu_tanh

Floats = NDArray[np.float64]
NAME = "map"


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
