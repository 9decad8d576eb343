"""First-fit packing of a batch's texts into attention rows, so that short texts share a row.

Attention is the only part of the graph that needs a rectangle, and its cost grows with the square
of the rectangle's width. Padding every text to the longest would make attention cost more than the
rest of the graph.
"""

from collections.abc import Sequence
from dataclasses import dataclass

# Each text starts at a multiple of the float32 count of the widest vector register. Each of its
# values then meets the same lane of the same sums as if the text were alone, and the result has the
# same bits. Row widths are such multiples too: the kernels are slow on a remainder (docs/log.md,
# 2026-11-20).
ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class RowPacking:
    """Positions of texts in B rows of W slots.

    Attributes:
        rows: row of each text.
        offsets: first slot of each text in its row.
        count: B.
        width: W, the tokens of the longest text, rounded up to the alignment.
    """

    rows: tuple[int, ...]
    offsets: tuple[int, ...]
    count: int
    width: int

    @classmethod
    def first_fit(cls, lengths: Sequence[int]) -> "RowPacking":
        """Put each text, longest first, into the first row with enough free slots.

        Args:
            lengths: tokens of each text; at least one text.
        """
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
