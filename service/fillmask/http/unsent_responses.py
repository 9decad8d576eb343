"""Limit on the bytes of responses that clients have not read, over all connections."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

MAX_UNSENT_BYTES = 32 * 2**20


class Reader(Protocol):
    """Interface of a client that reads a response."""

    def abort_slow_client(self) -> None:
        """Abort the connection and discard the unread bytes."""


class UnsentResponses:
    """Limit on the bytes of large responses that clients have not read completely.

    Above the limit, `sending` aborts the connections that have made no progress for the longest
    time.

    Args:
        limit_bytes: limit over all connections in bytes, by default MAX_UNSENT_BYTES.
    """

    def __init__(self, limit_bytes: int | None = None) -> None:
        self._limit_bytes = MAX_UNSENT_BYTES if limit_bytes is None else limit_bytes
        # ordered by the time of the last progress, the slowest reader first
        self._sizes: OrderedDict[Reader, int] = OrderedDict()
        self._total = 0

    @property
    def total_bytes(self) -> int:
        """Total bytes of the large responses that clients have not read completely."""
        return self._total

    @contextmanager
    def sending(self, reader: Reader, size_bytes: int) -> Iterator[None]:
        """Count a response within the `with` block."""
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
        """Record that a client has read a part of its response."""
        if reader in self._sizes:
            self._sizes.move_to_end(reader)

    def _remove(self, reader: Reader) -> None:
        self._total -= self._sizes.pop(reader, 0)
