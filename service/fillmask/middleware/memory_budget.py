"""Limit on the memory of all request bodies and responses together."""

from typing import Self

from fillmask.errors import OverloadedError

RETRY_AFTER_S = 1


class MemoryBudget:
    """Memory budget in bytes, shared by the requests of one event loop.

    Args:
        max_bytes: limit on the counted bytes of all claims together.
        free_bytes: number of uncounted bytes at the start of each claim, so that the budget never
            rejects short requests. The number of open connections bounds their sum.

    Attributes:
        held_bytes: counted bytes of the current claims.
        taken_bytes: bytes of all claims and large responses so far, including released claims.
    """

    def __init__(self, max_bytes: int, free_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.free_bytes = free_bytes
        self.held_bytes = self.taken_bytes = 0

    def claim(self) -> "Claim":
        return Claim(self)


class Claim:
    """Bytes of a budget that one request uses for its body and its response."""

    __slots__ = ("_budget", "_counted_bytes", "_size_bytes")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._size_bytes = self._counted_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._budget.held_bytes -= self._counted_bytes

    def add(self, size_bytes: int) -> None:
        """Claim more bytes. Rejected bytes do not count.

        Raises:
            OverloadedError: the budget has too few free bytes.
        """
        size_bytes += self._size_bytes
        more_bytes = max(0, size_bytes - self._budget.free_bytes - self._counted_bytes)
        if more_bytes and self._budget.held_bytes + more_bytes > self._budget.max_bytes:
            raise OverloadedError(
                "The memory for request bodies and responses is full; try again in "
                f"{RETRY_AFTER_S} s.",
                RETRY_AFTER_S,
            )
        self._size_bytes = size_bytes
        self._counted_bytes += more_bytes
        self._budget.held_bytes += more_bytes
        self._budget.taken_bytes += more_bytes

    def record_sent(self, size_bytes: int) -> None:
        """Record bytes of a response outside the budget, such as those of a static file."""
        self._budget.taken_bytes += size_bytes
