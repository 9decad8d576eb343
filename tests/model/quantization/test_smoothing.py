"""Rounding errors with smoothing factors, without factors, and with SmoothQuant's formula."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from model.quantization.smoothing import WEIGHT_ERRORS, smoothing_factors

Floats = NDArray[np.float32]


def _expected_error(rows: Floats, weight: Floats, factors: Floats) -> float:
    """Return the expected squared error of the outputs, up to a constant factor."""
    inputs, weights = np.abs(rows * factors), np.abs(weight / factors)
    of_inputs = (inputs.max(axis=1) ** 2).mean() * (weights**2).sum()
    of_weights = (weights.max(axis=1) ** 2).sum() * (inputs**2).mean(axis=0).sum()
    return float(of_inputs + WEIGHT_ERRORS * of_weights)


def test_the_error_falls() -> None:
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(200, 48)).astype(np.float32)
    rows *= generator.lognormal(sigma=1.5, size=48).astype(np.float32)
    weight = generator.normal(size=(30, 48)).astype(np.float32)
    factors = smoothing_factors(rows, weight)
    smooth = np.sqrt(np.abs(weight).max(axis=0) / np.abs(rows).max(axis=0))
    found, none, formula = (
        _expected_error(rows, weight, f) for f in (factors, np.ones(48, np.float32), smooth)
    )
    assert found < 0.5 * none
    assert found < 0.95 * formula
    assert factors.dtype == np.float32
    np.testing.assert_allclose(np.log(factors).mean(), 0, atol=1e-5)


def test_channels_that_are_never_used_do_no_harm() -> None:
    # Zeros in rows or weights give finite positive factors.
    rows, weight = np.ones((5, 6), np.float32), np.ones((4, 6), np.float32)
    rows[:, 0] = 0
    weight[:, 1] = 0
    factors = smoothing_factors(rows, weight)
    assert np.isfinite(factors).all()
    assert (factors > 0).all()


def test_the_same_again() -> None:
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(20, 8)).astype(np.float32)
    weight = generator.normal(size=(4, 8)).astype(np.float32)
    np.testing.assert_array_equal(smoothing_factors(rows, weight), smoothing_factors(rows, weight))
