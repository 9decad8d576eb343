"""Cache with a limit in bytes, for entries made from client input.

functools.lru_cache limits the number of entries. Such a limit does not bound memory if clients
choose the size of entries.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class ByteCache(Generic[Key, Value]):
    """A thread-safe least-recently-used cache.

    Args:
        max_bytes: limit of the total size of the entries.

    Attributes:
        held_bytes: total size of the entries.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Value | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: Key, value: Value, size_bytes: int) -> None:
        """Store or replace a value, unless it alone exceeds the limit.

        Args:
            value: any value except None.
            size_bytes: size of key and value.
        """
        if size_bytes > self._max_bytes:
            return
        with self._lock:
            if (replaced := self._entries.pop(key, None)) is not None:
                self.held_bytes -= replaced[1]
            self._entries[key] = (value, size_bytes)
            self.held_bytes += size_bytes
            while self.held_bytes > self._max_bytes:
                _, (_, dropped_bytes) = self._entries.popitem(last=False)
                self.held_bytes -= dropped_bytes
