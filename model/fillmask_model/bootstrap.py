"""Confidence intervals of held-out metrics by the bootstrap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

EVALUATION_SEED = 20_181_011  # fixed, so that all evaluations of a text agree
RESAMPLES = 2000
CONFIDENCE = 0.95


def bootstrap_bounds(
    count: int, statistics: Callable[[NDArray[np.int64]], NDArray[Any]]
) -> tuple[list[float], list[float]]:
    """Return the lower and the upper bounds of statistics over `count` rows.

    They are percentile intervals (Efron and Tibshirani 1993, section 13.3). They describe the
    variation between samples of rows, but not the variation between training runs.

    Args:
        count: number of independent rows, such as documents.
        statistics: function of the indices of drawn rows (count,) that returns the statistics (S,)
            of the sample, or NaN for one that the sample does not have.
    """
    generator = np.random.default_rng(EVALUATION_SEED)
    drawn = [statistics(generator.integers(count, size=count)) for _ in range(RESAMPLES)]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile(drawn, [tail, 1 - tail], axis=0).tolist()
    return low, high
