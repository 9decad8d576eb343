"""First-fit packing of a batch's texts into attention rows, so that short texts share a row.

Only attention needs a rectangular input. The cost of attention for a row grows with the square of
the row's width. In a batch of one long text and many short texts, one padded row per text makes
attention more expensive than the rest of the graph.
"""

from collections.abc import Sequence
from dataclasses import dataclass

# Number of float32 values in the widest vector register. Each text starts at a multiple of
# this number, so that vector instructions add its values in the same order as in a row of its own.
# The result then has the same bits. Row widths are also multiples of this number, because the
# attention kernels are slower for other widths (docs/decisions/004).
ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class RowPacking:
    """Positions of texts in B rows of W slots.

    Attributes:
        rows: index of the row of each text.
        offsets: first slot of each text in its row.
        count: number of rows, B.
        width: number of slots of each row, W. W is the length of the longest text, rounded
            up to a multiple of ALIGNMENT.
    """

    rows: tuple[int, ...]
    offsets: tuple[int, ...]
    count: int
    width: int

    @classmethod
    def first_fit(cls, lengths: Sequence[int]) -> "RowPacking":
        """Put each text, longest first, into the first row with enough free slots."""
        width = _aligned(max(lengths))
        free: list[int] = []  # first free aligned slot of each row
        rows, offsets = [0] * len(lengths), [0] * len(lengths)
        for text in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
            length = lengths[text]
            row = next((r for r, start in enumerate(free) if start + length <= width), len(free))
            if row == len(free):
                free.append(0)
            rows[text], offsets[text] = row, free[row]
            free[row] += _aligned(length)
        return cls(tuple(rows), tuple(offsets), len(free), width)


def _aligned(slots: int) -> int:
    return -(-slots // ALIGNMENT) * ALIGNMENT
