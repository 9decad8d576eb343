"""Overload protection: requests excluded from the load estimate, and pauses of the event loop."""

import asyncio
import time
from collections.abc import MutableMapping
from typing import Any

_EXCLUDED = "fillmask.excluded"


class ExcludedRequests:
    """Count of requests that wait for their client or a thread, or are in the model's queue.

    The overload check subtracts it from the number of open requests to estimate the work ahead of a
    new one. Otherwise clients that send or read slowly would count as work, and others would be
    rejected for it.

    Attributes:
        count: number of excluded requests.
    """

    def __init__(self) -> None:
        self.count = 0

    def exclude(self, scope: MutableMapping[str, Any]) -> None:
        """Exclude a request; a second call has no effect."""
        if _EXCLUDED not in scope:
            scope[_EXCLUDED] = True
            self.count += 1

    def include(self, scope: MutableMapping[str, Any]) -> None:
        """Include a request again, before it joins the queue or when it has ended."""
        if scope.pop(_EXCLUDED, False):
            self.count -= 1


PAUSE_S = 0.01
# long enough that a pause adds little latency and no worker runs out of work
THROTTLE_ABOVE_WAIT_S = 5 * PAUSE_S


class LoopThrottle:
    """Pauses the event loop between iterations during an overload.

    Waking the loop for each request takes 100 us of CPU time from the workers, against 17 us per
    request when the loop handles several at once: 252 of 261 requests/s at capacity with pauses,
    228 of 263 without. Clients that retry immediately get one attempt per iteration. 256 of them
    left 50 % of the capacity to other clients without pauses, and leave 75 % with them.
    """

    def __init__(self) -> None:
        self._pause_scheduled = False
        self._has_new_connection = False

    def schedule_pause(self) -> None:
        """Schedule a pause at the end of this iteration of the loop."""
        if not self._pause_scheduled:
            self._pause_scheduled = True
            asyncio.get_running_loop().call_soon(self._pause)

    def record_connection(self) -> None:
        """Skip the pause of this iteration, as each iteration accepts only one connection."""
        self._has_new_connection = True

    def _pause(self) -> None:
        if not self._has_new_connection:
            time.sleep(PAUSE_S)
        self._pause_scheduled = False
        self._has_new_connection = False
