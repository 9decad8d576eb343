"""Overload: requests that wait elsewhere, and pauses of the event loop."""

import asyncio
import time
from collections.abc import MutableMapping
from typing import Any

_EXCLUDED = "fillmask.excluded"


class ExcludedRequests:
    """A count of requests that wait for their clients or a thread, or have been queued already.

    The estimate of the work ahead of a request subtracts them from all that have begun. Otherwise
    clients that send slowly, or do not read, would count as work, and others be rejected for it.

    Attributes:
        elsewhere: the count.
    """

    def __init__(self) -> None:
        self.count = 0

    def exclude(self, scope: MutableMapping[str, Any]) -> None:
        """Count a request, once."""
        if _EXCLUDED not in scope:
            scope[_EXCLUDED] = True
            self.count += 1

    def include(self, scope: MutableMapping[str, Any]) -> None:
        """Count it no more: it joins the queue next, or has ended."""
        if scope.pop(_EXCLUDED, False):
            self.count -= 1


PAUSE_S = 0.01
# a wait that a pause does not make much longer, and in which nobody runs out of work
THROTTLE_ABOVE_WAIT_S = 5 * PAUSE_S


class LoopThrottle:
    """Puts a pause between the turns of the event loop in which requests come that have to wait.

    To wake it for each of them takes the CPU from the workers, for more than a refusal itself
    takes. After a pause there are several to take or refuse at once. And who asks again as soon as
    it is refused can do so once a turn.
    """

    def __init__(self) -> None:
        self._pause_scheduled = False
        self._has_new_connection = False

    def schedule_pause(self) -> None:
        """Pause at the end of this turn."""
        if not self._pause_scheduled:
            self._pause_scheduled = True
            asyncio.get_running_loop().call_soon(self._pause)

    def record_connection(self) -> None:
        """Somebody has connected: only one can in a turn, so there is no pause in this one."""
        self._has_new_connection = True

    def _pause(self) -> None:
        if not self._has_new_connection:
            time.sleep(PAUSE_S)
        self._pause_scheduled = False
        self._has_new_connection = False
