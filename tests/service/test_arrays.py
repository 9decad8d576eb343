import numpy as np

from fillmask.arrays import int_array


def test_int_array_is_int64() -> None:
    assert int_array([1, 2]).dtype == np.int64
    assert int_array([]).dtype == np.int64
