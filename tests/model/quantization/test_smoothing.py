"""Smoothing factors, compared with those by PyTorch's gradients in float64."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from fillmask_model.quantization.smoothing import (
    LEARNING_RATE,
    STEPS,
    WEIGHT_ERRORS,
    smoothing_factors,
)

Floats = NDArray[np.float32]


def test_channels_that_are_never_used_do_no_harm() -> None:
    # Zeros in rows or weights give finite positive factors.
    rows, weight = np.ones((5, 6), np.float32), np.ones((4, 6), np.float32)
    rows[:, 0] = 0
    weight[:, 1] = 0
    factors = smoothing_factors(rows, weight)
    assert np.isfinite(factors).all()
    assert (factors > 0).all()


def _by_autograd(rows: Floats, weight: Floats) -> Floats:
    """Optimise the same error with PyTorch's gradients in float64."""
    inputs, weights = torch.from_numpy(np.abs(rows)), torch.from_numpy(np.abs(weight))
    inputs, weights = inputs.double(), weights.double()
    start = (weights.amax(0) / inputs.amax(0)).sqrt().log()
    logs = (start - start.mean()).requires_grad_()
    optimizer = torch.optim.Adam([logs], lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, STEPS)
    for _ in range(STEPS):
        x, w = inputs * logs.exp(), weights / logs.exp()
        of_inputs = (x.amax(1) ** 2).mean() * (w**2).sum()
        of_weights = (w.amax(1) ** 2).sum() * (x**2).mean(0).sum()
        optimizer.zero_grad()
        (of_inputs + WEIGHT_ERRORS * of_weights).log().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
    found: Floats = (logs - logs.mean()).exp().detach().numpy()
    return found


def test_the_gradients_are_those_of_the_error() -> None:
    generator = np.random.default_rng(2)
    rows = generator.normal(size=(300, 40)).astype(np.float32)
    rows *= generator.lognormal(sigma=1.0, size=40).astype(np.float32)
    weight = generator.normal(size=(50, 40)).astype(np.float32)
    in_fortran_order = np.asfortranarray(rows)
    found = smoothing_factors(in_fortran_order, weight)
    np.testing.assert_allclose(found, _by_autograd(rows, weight), rtol=0.01)
    np.testing.assert_allclose(np.log(found).mean(), 0, atol=1e-5)
    assert found.dtype == np.float32
