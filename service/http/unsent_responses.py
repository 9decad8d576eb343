"""A bound, over all connections, on answers that clients have asked for and do not read."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

MAX_UNSENT_BYTES = 32 * 2**20


class Reader(Protocol):
    """A client that is being sent an answer."""

    def abort_slow_client(self) -> None:
        """End its connection and drop what it has not read."""


class UnsentResponses:
    """Counts the bytes of long answers until their clients have read them.

    Above the limit the clients that have read nothing for the longest time are cut off.

    Args:
        limit_bytes: most bytes over all connections; MAX_UNSENT_BYTES by default.
    """

    def __init__(self, limit_bytes: int | None = None) -> None:
        self._limit_bytes = MAX_UNSENT_BYTES if limit_bytes is None else limit_bytes
        # in the order of the last progress, the slowest reader first
        self._sizes: OrderedDict[Reader, int] = OrderedDict()
        self._total = 0

    @property
    def total_bytes(self) -> int:
        """Bytes of answers that are being sent now."""
        return self._total

    @contextmanager
    def sending(self, reader: Reader, size_bytes: int) -> Iterator[None]:
        """Count an answer for the length of the `with` block."""
        self._sizes[reader] = size_bytes
        self._total += size_bytes
        try:
            while self._total > self._limit_bytes and len(self._sizes) > 1:
                slowest = next(iter(self._sizes))
                self._remove(slowest)
                slowest.abort_slow_client()
            yield
        finally:
            self._remove(reader)

    def record_progress(self, reader: Reader) -> None:
        """Note that a client has read a part of its answer."""
        if reader in self._sizes:
            self._sizes.move_to_end(reader)

    def _remove(self, reader: Reader) -> None:
        self._total -= self._sizes.pop(reader, 0)
