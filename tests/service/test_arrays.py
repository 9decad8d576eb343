import numpy as np
import pytest

from fillmask.arrays import int_array, ordinals_in_group, start_offsets


def test_int_array_is_int64() -> None:
    assert int_array([1, 2]).dtype == np.int64
    assert int_array([]).dtype == np.int64


def test_start_offsets_of_parts_end_to_end() -> None:
    assert start_offsets(int_array([3, 1, 0, 2])).tolist() == [0, 3, 4, 4]


@pytest.mark.parametrize(
    ("groups", "expected"),
    [([0, 0, 1, 0], [0, 1, 0, 2]), ([2, 0, 2, 2], [0, 0, 1, 2]), ([], [])],
)
def test_ordinals_in_group(groups: list[int], expected: list[int]) -> None:
    # The elements of a group need not be adjacent. A group may have no elements.
    assert ordinals_in_group(int_array(groups), 3).tolist() == expected
