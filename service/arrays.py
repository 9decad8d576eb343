"""Aliases for the types of NumPy arrays."""

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


FloatArray = NDArray[np.float32]
