"""The number of requests that have begun and will not join the queue of the model next."""

from collections.abc import MutableMapping
from typing import Any

_ELSEWHERE = "fillmask.elsewhere"


class OnTheWay:
    """A count of requests that wait for their clients or a thread, or have been queued already.

    The estimate of the work ahead of a request subtracts them from all that have begun. Otherwise
    clients that send slowly, or do not read, would count as work, and others be rejected for it.

    Attributes:
        elsewhere: the count.
    """

    def __init__(self) -> None:
        self.elsewhere = 0

    def leave(self, scope: MutableMapping[str, Any]) -> None:
        """Count a request, once."""
        if _ELSEWHERE not in scope:
            scope[_ELSEWHERE] = True
            self.elsewhere += 1

    def come_back(self, scope: MutableMapping[str, Any]) -> None:
        """Count it no more: it joins the queue next, or has ended."""
        if scope.pop(_ELSEWHERE, False):
            self.elsewhere -= 1
