"""Factors that share the range of values between a linear map's inputs and its weights.

Input channels are multiplied, and weight columns divided, by a positive factor each: exact, and it
decides what rounding costs (the idea of Xiao et al. 2023, SmoothQuant, section 4). There the
factors follow a formula of largest values; here they minimise the outputs' expected squared error.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

STEPS = 300
SAMPLED_OUTPUTS = 1024  # rows of a weight that stand for all: the table has too many
# the model of independent errors counts the weights' for too little: measured, LOG.md, 2026-11-20
WEIGHT_ERRORS = 4.0
LEARNING_RATE = 0.03
SMALLEST = 1e-5


def equalizing_factors(
    rows: NDArray[np.float32], weight: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Factors of the input channels, with a geometric mean of 1.

    Rounding errors are taken as independent and uniform over a step, and a step as a share of the
    largest magnitude: of each row of the inputs, and of each output's weights.

    Args:
        rows: (S, in) inputs on real text.
        weight: (out, in); where there are many outputs, some of them are looked at.

    Returns:
        (in,) positive float32.
    """
    inputs = torch.from_numpy(np.abs(rows)).clamp(min=SMALLEST)
    sample = weight[:: math.ceil(len(weight) / SAMPLED_OUTPUTS)]
    weights = torch.from_numpy(np.abs(sample)).clamp(min=SMALLEST)
    input_power, weight_power = (inputs**2).mean(dim=0), (weights**2).sum(dim=0)
    # where SmoothQuant starts with its alpha of 0.5
    start = (weights.amax(dim=0) / inputs.amax(dim=0)).sqrt().log()
    logs = (start - start.mean()).requires_grad_()
    optimizer = torch.optim.Adam([logs], lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, STEPS)
    with torch.enable_grad():
        for _ in range(STEPS):
            # `max` and a product, not `amax` and a quotient: a third of the time
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
