"""First-fit packing of texts into attention rows."""

import pytest

from fillmask.engine.attention_rows import RowPacking


@pytest.mark.parametrize(("length", "width"), [(1, 16), (7, 16), (16, 16), (17, 32), (256, 256)])
def test_one_text_has_a_row_to_itself(length: int, width: int) -> None:
    # The padding ends at a multiple of the vector length.
    assert RowPacking.first_fit([length]) == RowPacking(
        rows=(0,), offsets=(0,), count=1, width=width
    )


def test_short_texts_share_rows() -> None:
    # The longest text goes first: 60 slots alone, then 20 and 18 in one row, then 10 alone.
    packing = RowPacking.first_fit([18, 60, 10, 20])
    assert packing == RowPacking(rows=(1, 0, 2, 1), offsets=(32, 0, 0, 0), count=3, width=64)


def test_texts_of_one_length_have_a_row_each() -> None:
    # A row of two texts would be wider than necessary.
    packing = RowPacking.first_fit([20, 20, 20])
    assert (packing.count, packing.width, packing.offsets) == (3, 32, (0, 0, 0))
