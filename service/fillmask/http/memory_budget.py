"""Limit on the memory that all requests together use for one purpose."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from fillmask.errors import OverloadedError

RETRY_AFTER_S = 1
# Time after which the budget may evict a growing claim. Few clients take longer to send 1 MB.
EVICTABLE_AFTER_S = 0.5


class MemoryBudget:
    """Memory budget in bytes, shared by the requests of one event loop.

    Args:
        label: purpose of the memory, for error messages.
        max_bytes: limit on the counted bytes of all claims together.
        free_bytes: number of uncounted bytes at the start of each claim, so that the budget never
            rejects requests up to this size. The limit on connections bounds the sum of the
            uncounted bytes.

    Attributes:
        held_bytes: counted bytes of the current claims.
        taken_bytes: counted bytes of all claims so far, including released claims.
        growing: claims that the budget may evict, the oldest first.
    """

    def __init__(self, label: str, max_bytes: int, free_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.held_bytes = self.taken_bytes = 0
        self._label = label
        self.free_bytes = free_bytes
        self.growing: dict[Claim, None] = {}

    def claim(self) -> "Claim":
        """Return an empty claim, which releases its bytes at the end of its `with` block."""
        return Claim(self)

    def take(self, size_bytes: int, claim: "Claim") -> None:
        """Count bytes of a claim and evict other claims if necessary.

        Raises:
            OverloadedError: the budget has too few free bytes and may not evict another claim.
        """
        while self.held_bytes + size_bytes > self.max_bytes:
            oldest = next((one for one in self.growing if one is not claim), None)
            if oldest is None or time.monotonic() - oldest.begun_s < EVICTABLE_AFTER_S:
                raise self.exhausted()
            oldest.evict()
        self.held_bytes += size_bytes
        self.taken_bytes += size_bytes

    def exhausted(self) -> OverloadedError:
        """Return the error for a claim that exceeds the budget."""
        return OverloadedError(
            f"The memory for {self._label} is full; try again in {RETRY_AFTER_S} s.",
            RETRY_AFTER_S,
        )


class Claim:
    """Bytes of a budget that one request uses.

    Attributes:
        begun_s: time of the first counted byte of a growing claim, in seconds of the monotonic
            clock.
        evicted: true if another claim has taken the bytes of this claim.
    """

    __slots__ = ("_budget", "_counted_bytes", "_on_eviction", "_size_bytes", "begun_s", "evicted")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._size_bytes = self._counted_bytes = 0
        self._on_eviction: Callable[[], object] | None = None
        self.begun_s = 0.0
        self.evicted = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()

    def release(self) -> None:
        """Return all bytes to the budget."""
        if self._counted_bytes:
            self.settle()
            self._budget.held_bytes -= self._counted_bytes
        self._size_bytes = self._counted_bytes = 0

    def add(self, size_bytes: int) -> None:
        """Claim more bytes.

        Raises:
            OverloadedError: the budget is exhausted, or another claim has evicted this claim.
        """
        self._size_bytes += size_bytes
        more_bytes = self._size_bytes - self._budget.free_bytes - self._counted_bytes
        if more_bytes <= 0:
            return
        if self.evicted:
            raise self._budget.exhausted()
        self._budget.take(more_bytes, self)
        if not self._counted_bytes and self._on_eviction is not None:
            self.begun_s = time.monotonic()
            self._budget.growing[self] = None
        self._counted_bytes += more_bytes

    def grow(self, on_eviction: Callable[[], object]) -> None:
        """Allow eviction of the growing claim until `settle`.

        Args:
            on_eviction: function that frees the memory of the claim.
        """
        self._on_eviction = on_eviction

    def settle(self) -> None:
        """Forbid eviction of the complete claim."""
        self._on_eviction = None
        self._budget.growing.pop(self, None)

    def evict(self) -> None:
        """Free the bytes for another claim."""
        assert self._on_eviction is not None  # noqa: S101 - only growing claims are evicted
        self._on_eviction()
        self.settle()
        self.evicted = True
        self._budget.held_bytes -= self._counted_bytes
        self._counted_bytes = 0
