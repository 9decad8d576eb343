"""Smoothing factors that balance the ranges of a linear layer's inputs and weights.

Smoothing multiplies each input channel by a positive factor and divides its weight column by the
same factor. The product stays the same, but the rounding error changes (Xiao et al. 2023,
SmoothQuant, section 4). SmoothQuant computes the factors from maxima. The factors of this module
minimise the expected squared error of the outputs.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

STEPS = 300
SAMPLED_OUTPUTS = 1024  # sampled rows per weight, because the embedding table has many more
# corrects the error model, which underestimates weight errors (docs/log.md, 2026-11-20)
WEIGHT_ERRORS = 4.0
LEARNING_RATE = 0.03
SMALLEST = 1e-5


def smoothing_factors(
    rows: NDArray[np.float32], weight: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Optimise the smoothing factors of the input channels.

    The error model assumes independent rounding errors that are uniform over a step. A step is
    proportional to the largest magnitude of an input row or of an output's weights.

    Args:
        rows: (S, in) inputs on real text.
        weight: (out, in) weight. The function uses a sample of at most 1,024 outputs, because the
            embedding table has many more.

    Returns:
        (in,) positive float32 factors with a geometric mean of 1.
    """
    inputs = torch.from_numpy(np.abs(rows)).clamp(min=SMALLEST)
    sample = weight[:: math.ceil(len(weight) / SAMPLED_OUTPUTS)]
    weights = torch.from_numpy(np.abs(sample)).clamp(min=SMALLEST)
    input_power, weight_power = (inputs**2).mean(dim=0), (weights**2).sum(dim=0)
    # SmoothQuant's factors for alpha = 0.5
    start = (weights.amax(dim=0) / inputs.amax(dim=0)).sqrt().log()
    logs = (start - start.mean()).requires_grad_()
    optimizer = torch.optim.Adam([logs], lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, STEPS)
    with torch.enable_grad():
        for _ in range(STEPS):
            # `max` with a product takes a third of the time of `amax` with a quotient
            factors, inverses = logs.exp(), (-logs).exp()
            input_steps = ((inputs * factors).max(dim=1).values ** 2).mean()
            weight_steps = ((weights * inverses).max(dim=1).values ** 2).sum()
            of_inputs = input_steps * (weight_power * inverses**2).sum()
            of_weights = weight_steps * (input_power * factors**2).sum()
            optimizer.zero_grad()
            torch.log(of_inputs + WEIGHT_ERRORS * of_weights).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    found = logs.detach()
    centred: NDArray[np.float32] = (found - found.mean()).exp().numpy()
    return centred
