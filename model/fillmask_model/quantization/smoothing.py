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

STEPS = 150
SAMPLED_OUTPUTS = 512  # sampled rows per weight, because the embedding table has many more
# corrects the error model, which underestimates weight errors (docs/decisions/003)
WEIGHT_ERRORS = 4.0
LEARNING_RATE, LAST_RATE = 0.06, 0.0006  # with a linear decay
# Kingma & Ba 2015, Algorithm 1. torch.optim would load torch's compiler, which takes 1.5 s.
DECAY_1, DECAY_2, EPSILON = 0.9, 0.999, 1e-8
SMALLEST = 1e-5


def smoothing_factors(
    rows: NDArray[np.float32], weight: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Optimise the smoothing factors of the input channels.

    The error model assumes independent rounding errors that are uniform over a step. A step is
    proportional to the largest magnitude of an input row or of an output's weights.

    Args:
        rows: (S, in) inputs on real text.
        weight: (out, in) weight. The function uses a sample of at most 512 outputs, because the
            embedding table has many more.

    Returns:
        (in,) positive float32 factors with a geometric mean of 1.
    """
    inputs = np.abs(rows).clip(SMALLEST)
    weights = np.abs(weight[:: math.ceil(len(weight) / SAMPLED_OUTPUTS)]).clip(SMALLEST)
    input_power = np.mean(inputs**2, axis=0, dtype=np.float64)
    weight_power = np.sum(weights**2, axis=0, dtype=np.float64)
    # SmoothQuant's factors for alpha = 0.5
    start = np.log(np.sqrt(weights.max(axis=0) / inputs.max(axis=0)))
    logs = start - start.mean()
    first_moment, second_moment = np.zeros_like(logs), np.zeros_like(logs)
    input_ranges, weight_ranges = _Ranges(inputs), _Ranges(weights)
    for step, rate in enumerate(np.linspace(LEARNING_RATE, LAST_RATE, STEPS), 1):
        factors = np.exp(logs)
        # each error is a product of two sums over channels, whose derivatives with respect to the
        # logarithms of the factors are 2 or -2 times their terms
        input_steps = input_ranges.squares(factors) / len(inputs)
        weight_steps = WEIGHT_ERRORS * weight_ranges.squares((1 / factors).astype(np.float32))
        weight_terms, input_terms = weight_power / factors**2, input_power * factors**2
        of_inputs = input_steps.sum() * weight_terms.sum()
        of_weights = weight_steps.sum() * input_terms.sum()
        gradient = input_steps * weight_terms.sum() - input_steps.sum() * weight_terms
        gradient += weight_steps.sum() * input_terms - weight_steps * input_terms.sum()
        gradient *= 2 / (of_inputs + of_weights)  # of the errors' logarithm
        first_moment += (1 - DECAY_1) * (gradient - first_moment)
        second_moment += (1 - DECAY_2) * (gradient**2 - second_moment)
        deviation = np.sqrt(second_moment / (1 - DECAY_2**step)) + EPSILON
        logs -= rate * first_moment / (1 - DECAY_1**step) / deviation
    centred: NDArray[np.float32] = np.exp(logs - logs.mean()).astype(np.float32)
    return centred


class _Ranges:
    """Largest magnitudes of rows (S, in) after multiplication by factors of the channels."""

    def __init__(self, magnitudes: NDArray[np.float32]) -> None:
        # rows that are not contiguous take ten times as long
        self._magnitudes = torch.from_numpy(np.ascontiguousarray(magnitudes))
        self._products = torch.empty_like(self._magnitudes)
        self._rows = np.arange(len(magnitudes))

    def squares(self, factors: NDArray[np.float32]) -> NDArray[np.float64]:
        """Sum the squared largest products of the rows by the channel (in,) of the product."""
        torch.mul(self._magnitudes, torch.from_numpy(factors), out=self._products)
        products = self._products.numpy()
        widest = products.argmax(axis=1)  # five times as fast as PyTorch's `max` with indices
        squares = products[self._rows, widest].astype(np.float64) ** 2
        return np.asarray(np.bincount(widest, squares, products.shape[1]), np.float64)
