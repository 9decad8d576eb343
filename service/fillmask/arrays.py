"""NumPy array types and index helpers for the served graph."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]


def int_array(values: Sequence[int]) -> IntArray:
    """Return the values as int64, the only integer type that the served graph accepts."""
    return np.array(values, dtype=np.int64)


def start_offsets(lengths: IntArray) -> IntArray:
    """Return the start of each part in a concatenation, given the lengths of the parts."""
    return np.cumsum(lengths) - lengths


def ordinals_in_group(groups: IntArray, group_count: int) -> IntArray:
    """Number the elements of each group from 0, in the order in which they appear.

    Args:
        groups: index of the group of each element.
        group_count: number of groups, some of which may be empty.
    """
    ordinals = np.empty(len(groups), dtype=np.int64)
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups, minlength=group_count)
    ordinals[order] = np.arange(len(groups)) - np.repeat(start_offsets(sizes), sizes)
    return ordinals
