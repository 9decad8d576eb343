"""Trace of a simulation, and the violation that ends one."""

import hashlib
from collections import deque

LAST_EVENTS = 60


class ViolationError(BaseException):
    """A broken promise of the service. No handler of the service may swallow it."""


class Trace:
    """Events of a simulation: the last ones, and a digest of all.

    Args:
        show: whether to print each event.
    """

    def __init__(self, *, show: bool = False) -> None:
        self._show = show
        self._digest = hashlib.blake2b(digest_size=16)
        self._last: deque[str] = deque(maxlen=LAST_EVENTS)

    def add(self, now_s: float, event: str) -> None:
        """Record an event at a virtual time."""
        line = f"{now_s:.6f} {event}"
        self._digest.update(line.encode())
        self._last.append(line)
        if self._show:
            print(line)

    @property
    def digest(self) -> str:
        """Hexadecimal digest of all events."""
        return self._digest.hexdigest()

    @property
    def last(self) -> list[str]:
        """The last events, oldest first."""
        return list(self._last)
