"""Where each text of a batch lies inside attention: short texts share a row, a mask between them.

Attention is the one part of the graph that needs a rectangle, and its cost grows with the square of
the rectangle's width. Padding every text to the longest would make it cost more than all the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

# A text begins at a multiple of the widest vector's float32s. Then each of its values meets the
# same lane of the same sums as if the text were alone, and the answer has the same bits. Rows end
# at such a multiple too: the kernels are slow with what is left over (LOG.md, 2026-11-20).
ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class RowPacking:
    """A place for each text in B rows of W slots.

    Attributes:
        rows: for each text the row it lies in.
        offsets: for each text its first slot there.
        count: B.
        width: W, the tokens of the longest text, rounded up to the alignment.
    """

    rows: tuple[int, ...]
    offsets: tuple[int, ...]
    count: int
    width: int

    @classmethod
    def of(cls, lengths: Sequence[int]) -> "RowPacking":
        """First fit, longest first; at least one text.

        Args:
            lengths: tokens of each text.
        """
        width = _aligned(max(lengths))
        free: list[int] = []  # the first slot of each row where a text may begin
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
