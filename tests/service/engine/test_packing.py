"""Bins: every text has a place of its own, at an offset that keeps its bits."""

import math

import numpy as np
import pytest

from service.engine.packing import ALIGNMENT, RowPacking


@pytest.mark.parametrize(("length", "width"), [(1, 16), (7, 16), (16, 16), (17, 32), (256, 256)])
def test_one_text_has_a_row_to_itself(length: int, width: int) -> None:
    """Padded to whole vectors, no further."""
    assert RowPacking.first_fit([length]) == RowPacking(
        rows=(0,), offsets=(0,), count=1, width=width
    )


def test_short_texts_share_a_row_beside_a_long_one() -> None:
    """Longest first: 60 alone, then 20 and 18 in one row, 10 left over; at multiples of 16."""
    bins = RowPacking.first_fit([18, 60, 10, 20])
    assert bins == RowPacking(rows=(1, 0, 2, 1), offsets=(32, 0, 0, 0), count=3, width=64)


def test_texts_of_one_length_have_a_row_each() -> None:
    """Nothing is gained by sharing."""
    bins = RowPacking.first_fit([20, 20, 20])
    assert (bins.count, bins.width, bins.offsets) == (3, 32, (0, 0, 0))


@pytest.mark.parametrize("seed", range(30))
def test_no_two_texts_share_a_slot(seed: int) -> None:
    """Random lengths: inside the rectangle, disjoint, aligned, and no row is empty."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 120, rng.integers(1, 40)).tolist()
    bins = RowPacking.first_fit(lengths)
    used = np.zeros((bins.count, bins.width), dtype=int)
    for length, row, offset in zip(lengths, bins.rows, bins.offsets, strict=True):
        assert offset % ALIGNMENT == 0
        assert offset + length <= bins.width
        used[row, offset : offset + length] += 1
    assert used.max() == 1
    assert used.any(axis=1).all()
    assert bins.width == ALIGNMENT * math.ceil(max(lengths) / ALIGNMENT)
