"""int8 rows: half a step of error at most, and nothing odd at the edges."""

from __future__ import annotations

import numpy as np
import pytest

from export.quantize import quantize_rows


def test_error_is_at_most_half_a_step() -> None:
    """Each value comes back within half of its row's scale."""
    weight = np.random.default_rng(0).normal(size=(40, 30)).astype(np.float32)
    weight *= np.geomspace(1e-6, 1e3, 40, dtype=np.float32)[:, None]
    rows = quantize_rows(weight)
    assert rows.values.dtype == np.int8
    error = np.abs(rows.dequantized() - weight)
    assert (error <= 0.5001 * rows.scales[:, None]).all()


def test_the_largest_of_a_row_becomes_127() -> None:
    """The range is used in full, and symmetrically: -128 does not occur."""
    rows = quantize_rows(np.array([[0.1, -2.0], [3.0, 1.0]], np.float32))
    assert rows.values.tolist() == [[6, -127], [127, 42]]


def test_a_row_of_zeros_stays_zero() -> None:
    """It divides nothing by nothing."""
    rows = quantize_rows(np.zeros((2, 3), np.float32))
    assert (rows.dequantized() == 0).all()
    assert (rows.scales == 1).all()


def test_rounding_twice_is_rounding_once() -> None:
    """The values int8 stands for are themselves exact in int8."""
    weight = np.random.default_rng(1).normal(size=(5, 64)).astype(np.float32)
    once = quantize_rows(weight)
    np.testing.assert_array_equal(quantize_rows(once.dequantized()).values, once.values)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_weight_that_is_not_finite_is_refused(value: float) -> None:
    """NaN and infinity cannot be rounded."""
    with pytest.raises(ValueError, match="not finite"):
        quantize_rows(np.array([[1.0, value]], np.float32))
