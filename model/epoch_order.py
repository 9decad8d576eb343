"""In which order an epoch takes what there is: drawn anew for each, from the run's seed alone."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@lru_cache(maxsize=2)  # of the epoch that is running, for packed rows and for short texts
def epoch_order(count: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """A permutation (count,) of 0 to count - 1."""
    return np.random.default_rng([seed, epoch]).permutation(count)
