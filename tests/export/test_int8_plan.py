"""The rewritings are exact, and rounding after them loses little even with outlying channels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from export.calibration import InputStatistics
from export.int8_plan import (
    FLOAT_CHANNELS,
    Channels,
    Int8Linear,
    plan_from_hidden,
    plan_linear,
)
from model.rounding import GELU_SMALLEST_STEP, GELU_ZERO
from tests.model.oracle import gelu_tanh

Floats = NDArray[np.float64]


def _inputs() -> Floats:
    """Rows with a few channels far above the rest, as encoders have them."""
    return np.random.default_rng(0).normal(size=(400, 96)) * np.where(
        np.arange(96) % 31 == 3, 40, 1
    )


def _statistics(x: Floats) -> InputStatistics:
    return InputStatistics(x.T @ x, x[::2].astype(np.float32))


def _weight() -> NDArray[np.float32]:
    return np.random.default_rng(1).normal(size=(40, 96)).astype(np.float32)


def _rounded(x: Floats, plan: Int8Linear) -> Floats:
    """What the graph computes, in float64."""
    y = x * plan.factors
    scale = np.abs(y).max(axis=1, keepdims=True) / 127
    product: Floats = np.rint(y / scale) * scale @ plan.rows.dequantized().T
    return product + x[:, plan.channels.float32] @ plan.float_weight.T


@pytest.mark.parametrize("float_channels", [0, FLOAT_CHANNELS])
def test_only_the_weights_rounding_is_lost_where_inputs_are_not_rounded(
    float_channels: int,
) -> None:
    """Factors and float channels give the exact map of the rounded weights."""
    x = _inputs()
    plan = plan_linear(_weight(), _statistics(x), float_channels)
    exact = x @ _weight().T
    y = x * plan.factors @ plan.rows.dequantized().T
    y += x[:, plan.channels.float32] @ plan.float_weight.T
    assert np.abs(y - exact).max() < 0.01 * np.abs(exact).max()


def test_rounded_rows_come_close() -> None:
    """In eight bits a row the outputs' error is under 1 %, and far under plain rounding's."""
    x = _inputs()
    exact = x @ _weight().T
    y = _rounded(x, plan_linear(_weight(), _statistics(x), FLOAT_CHANNELS))
    plain_scale = np.abs(x).max(axis=1, keepdims=True) / 127
    plain = np.rint(x / plain_scale) * plain_scale @ _weight().T
    error, plain_error = (np.linalg.norm(z - exact) / np.linalg.norm(exact) for z in (y, plain))
    assert error < 0.01
    assert error < 0.5 * plain_error


def test_the_largest_channels_are_the_float_ones() -> None:
    """As many as asked for, in ascending order, with their exact weights and no factor."""
    x = _inputs()
    plan = plan_linear(_weight(), _statistics(x), 3)
    np.testing.assert_array_equal(plan.channels.float32, [3, 34, 65])
    np.testing.assert_array_equal(plan.float_weight, _weight()[:, [3, 34, 65]])
    assert np.flatnonzero(plan.factors == 0).tolist() == [3, 34, 65]
    assert sorted([*plan.channels.float32, *plan.channels.int8]) == list(range(96))


def test_a_channel_that_widens_every_row_goes_before_one_that_is_widest_once() -> None:
    """What counts is what a channel does to the rows' scales, not its single largest value."""
    x = np.random.default_rng(3).uniform(-1, 1, (400, 32))
    x[:, 7] = 10
    x[11, 5] = 100
    assert Channels.of(_statistics(x), 1).float32.tolist() == [7]
    everything = InputStatistics(x.T @ x, x.astype(np.float32))
    assert Channels.of(everything, 2).float32.tolist() == [5, 7]


def test_a_narrow_map_keeps_most_channels_in_int8() -> None:
    """At most an eighth is computed in float32."""
    statistics = _statistics(np.random.default_rng(2).normal(size=(50, 20)))
    assert len(Channels.of(statistics, FLOAT_CHANNELS).float32) == 2


def test_a_gelus_outputs_come_close() -> None:
    """Unsigned rows about 16, with steps no finer than their negative part needs."""
    x = gelu_tanh(_inputs())
    statistics = _statistics(x)
    channels = Channels.of(statistics, 12)
    rows = plan_from_hidden(_weight(), statistics, channels.int8)
    y = x[:, channels.int8]
    scale = np.maximum(y.max(axis=1, keepdims=True) / (255 - GELU_ZERO), GELU_SMALLEST_STEP)
    rounded = np.rint(y / scale) + GELU_ZERO
    assert rounded.min() >= 0
    assert rounded.max() <= 255
    exact = y @ _weight()[:, channels.int8].T
    error = np.linalg.norm((rounded - GELU_ZERO) * scale @ rows.dequantized().T - exact)
    assert error < 0.01 * np.linalg.norm(exact)
