"""A bound on the memory that all requests hold together, for one purpose."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from service.errors import OverloadedError

RETRY_AFTER_S = 1
# a claim that has grown for as long may be evicted; few honest clients need more for a megabyte
EVICTABLE_AFTER_S = 0.5


class MemoryBudget:
    """A number of bytes that requests claim while they hold them. For one event loop.

    Args:
        label: its purpose, for errors.
        max_bytes: bound on all claims together.
        free_bytes: of each claim, that are not counted: requests of this size are never rejected.
            Connections are bounded, and so is their sum.

    Attributes:
        max_bytes: the bound.
        free_bytes: as above.
        held_bytes: the counted bytes of all claims.
        taken_bytes: the sum of all that has been counted, also of claims that have ended.
        growing: claims that may be evicted, the oldest first.
    """

    def __init__(self, label: str, max_bytes: int, free_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.held_bytes = self.taken_bytes = 0
        self._label = label
        self.free_bytes = free_bytes
        self.growing: dict[Claim, None] = {}

    def claim(self) -> "Claim":
        """Return a claim of nothing yet; its `with` gives back what it has claimed."""
        return Claim(self)

    def take(self, size_bytes: int, claim: "Claim") -> None:
        """Count bytes of a claim.

        Raises:
            OverloadedError: there is no room, and no other claim to evict.
        """
        while self.held_bytes + size_bytes > self.max_bytes:
            oldest = next((one for one in self.growing if one is not claim), None)
            if oldest is None or time.monotonic() - oldest.begun_s < EVICTABLE_AFTER_S:
                raise self.exhausted()
            oldest.evict()
        self.held_bytes += size_bytes
        self.taken_bytes += size_bytes

    def exhausted(self) -> OverloadedError:
        """Return the error of a claim for which there is no room."""
        return OverloadedError(
            f"The service holds as many {self._label} as its memory allows; try again in "
            f"{RETRY_AFTER_S} s.",
            RETRY_AFTER_S,
        )


class Claim:
    """The bytes that one request holds.

    Args:
        budget: they are claimed from.

    Attributes:
        begun_s: monotonic time of its first counted byte.
        evicted: another claim has taken its bytes, for it grew too slowly.
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
        """Give back all that has been claimed."""
        if self._counted_bytes:
            self.settle()
            self._budget.held_bytes -= self._counted_bytes
        self._size_bytes = self._counted_bytes = 0

    def add(self, size_bytes: int) -> None:
        """Claim more.

        Raises:
            OverloadedError: the budget is exhausted, or the claim has been evicted.
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
        """Say that it will grow until `settle`, and may be evicted if that takes long.

        Args:
            on_eviction: frees what is held.
        """
        self._on_eviction = on_eviction

    def settle(self) -> None:
        """Say that it has all it needs: it is not evicted any more."""
        self._on_eviction = None
        self._budget.growing.pop(self, None)

    def evict(self) -> None:
        """Free its bytes for another claim."""
        assert self._on_eviction is not None  # noqa: S101 - only growing claims are evicted
        self._on_eviction()
        self.settle()
        self.evicted = True
        self._budget.held_bytes -= self._counted_bytes
        self._counted_bytes = 0
