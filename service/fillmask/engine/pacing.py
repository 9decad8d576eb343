"""Feeding of many requests to a batcher, so that its batches are full and its queue is short."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from fillmask.engine.batcher import Batcher

T = TypeVar("T")
Item = TypeVar("Item")

# number of queued batches per worker, so that no worker is idle while the next texts are tokenized
_WAITING_BATCHES = 8
# minimum number of requests in flight, because a single one leaves workers idle in its last passes
_MIN_REQUESTS = 2
# interval of checks for room, because completed passes make room without setting the event
_CHECK_EVERY_S = 0.01


class QueueFeed:
    """Pace of the requests of one bulk caller.

    The caller starts the next request while the batcher has too few tokens to keep its workers
    busy, so that batches are full for requests of one pass and of thousands.

    Args:
        batch_tokens: token budget of one batch, times the number of workers.

    Attributes:
        changed: event after which the caller may have room for another request.
    """

    def __init__(self, batcher: Batcher, batch_tokens: int) -> None:
        self._batcher = batcher
        self._max_tokens = _WAITING_BATCHES * batch_tokens
        self._in_flight = 0
        self.changed = asyncio.Event()

    async def run(self, request: Awaitable[T]) -> T:
        """Await a request, which counts as in flight until it ends."""
        self._in_flight += 1
        try:
            return await request
        finally:
            self._in_flight -= 1
            self.changed.set()

    async def wait_for_room(
        self,
        is_full: Callable[[], bool] = lambda: False,
        is_large: Callable[[], bool] = lambda: False,
    ) -> None:
        """Wait until the next request may start.

        Args:
            is_full: function that returns True while the caller may not start any request.
            is_large: function that returns True while the caller may start a request only if few
                are in flight.
        """
        while is_full() or (
            self._in_flight >= _MIN_REQUESTS
            and (is_large() or self._batcher.accepted_tokens >= self._max_tokens)
        ):
            self.changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CHECK_EVERY_S):
                    await self.changed.wait()

    async def map(self, function: Callable[[Item], Awaitable[T]], items: Iterable[Item]) -> list[T]:
        """Return the results of a function in the order of the items.

        Raises:
            Exception: the error of the first item that has one. It cancels the later items.
        """
        results: list[T] = []
        started: deque[asyncio.Task[T]] = deque()
        try:
            for item in items:
                await self.wait_for_room()
                started.append(asyncio.create_task(self.run(function(item))))
                await asyncio.sleep(0)  # lets the request join the queue
                while started and started[0].done():
                    results.append(started.popleft().result())
            while started:
                results.append(await started[0])
                started.popleft()
        finally:
            for task in started:
                task.cancel()
            await asyncio.gather(*started, return_exceptions=True)
        return results
