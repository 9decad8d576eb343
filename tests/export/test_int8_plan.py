"""The rewritings are exact, and rounding after them loses little even with outlying channels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from export.calibration import InputStatistics
from export.int8_plan import Int8Linear, plan_linear
from tests.model.oracle import gelu_tanh

Floats = NDArray[np.float64]


def _inputs(*, from_gelu: bool) -> Floats:
    """Rows with a few channels far above the rest, as encoders have them."""
    x = np.random.default_rng(0).normal(size=(400, 96)) * np.where(np.arange(96) % 31 == 3, 40, 1)
    return gelu_tanh(x) if from_gelu else x


def _plan(x: Floats, *, from_gelu: bool) -> tuple[Int8Linear, NDArray[np.float32], Floats]:
    generator = np.random.default_rng(1)
    weight = generator.normal(size=(40, 96)).astype(np.float32)
    bias = generator.normal(size=40).astype(np.float32)
    statistics = InputStatistics(np.abs(x).max(axis=0), x.T @ x)
    plan = plan_linear(weight, bias, statistics, from_gelu=from_gelu)
    return plan, weight, x @ weight.T + bias


def _rest(plan: Int8Linear, x: Floats) -> Floats:
    rest: Floats = x[:, plan.float_channels] @ plan.float_weight.T + plan.bias
    return rest


@pytest.mark.parametrize("from_gelu", [False, True])
def test_only_the_weights_rounding_is_lost_where_inputs_are_not_rounded(from_gelu: bool) -> None:  # noqa: FBT001 - pytest passes it
    """Factor, shift, float channels and bias give the exact map of the rounded weights."""
    x = _inputs(from_gelu=from_gelu)
    plan, weight, exact = _plan(x, from_gelu=from_gelu)
    shifted = x * plan.factor + (0 if plan.shift is None else plan.shift)
    y = shifted @ plan.rows.dequantized().T + _rest(plan, x)
    assert np.abs(y - exact).max() < 0.02 * np.abs(exact).max()
    kept = plan.factor > 0
    unsmoothed = plan.rows.dequantized()[:, kept] * plan.factor[kept]
    assert np.abs(unsmoothed - weight[:, kept]).max() < 0.05
    np.testing.assert_array_equal(plan.float_weight, weight[:, ~kept])


@pytest.mark.parametrize("from_gelu", [False, True])
def test_rounded_rows_come_close(from_gelu: bool) -> None:  # noqa: FBT001 - pytest passes it
    """In eight bits a row the outputs' error is under 1 %, and far under plain rounding's."""
    x = _inputs(from_gelu=from_gelu)
    plan, weight, exact = _plan(x, from_gelu=from_gelu)
    shifted = x * plan.factor + (0 if plan.shift is None else plan.shift)
    if from_gelu:
        assert shifted.min() >= 0
    steps = 255 if from_gelu else 127
    scale = np.abs(shifted).max(axis=1, keepdims=True) / steps
    y = np.rint(shifted / scale) * scale @ plan.rows.dequantized().T + _rest(plan, x)
    plain_scale = np.abs(x).max(axis=1, keepdims=True) / 127
    plain = np.rint(x / plain_scale) * plain_scale @ weight.T + (exact - x @ weight.T)
    error, plain_error = (np.linalg.norm(z - exact) / np.linalg.norm(exact) for z in (y, plain))
    assert error < 0.01
    assert error < 0.5 * plain_error


def test_the_largest_channels_are_the_float_ones() -> None:
    """Sixteen channels, those with the largest values, in ascending order."""
    x = _inputs(from_gelu=False)
    plan, _, _ = _plan(x, from_gelu=False)
    expected = np.sort(np.argsort(-np.abs(x).max(axis=0))[:16])
    np.testing.assert_array_equal(plan.float_channels, expected)
    assert (plan.factor[expected] == 0).all()
    assert np.count_nonzero(plan.factor) == 96 - 16
