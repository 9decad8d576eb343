"""NumPy array types of the served graph."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]


def int_array(values: Sequence[int]) -> IntArray:
    """Return the values as int64, the only integer type that the served graph accepts."""
    return np.array(values, dtype=np.int64)
