"""NumPy array types of the served graph."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]


def int_array(values: Sequence[int]) -> IntArray:
    """Return the values as int64, the only integer type that the served graph accepts."""
    return np.array(values, dtype=np.int64)


def check_finite(values: object) -> None:
    """Raise ValueError if outputs of a model have NaN or infinity, which JSON lacks."""
    if not np.isfinite(values).all():  # type: ignore[call-overload] # anything like an array
        raise ValueError("the model returns NaN or infinity; export its bundle again")
