"""asyncio helpers for concurrent coroutines and for reference counts."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def gather_or_cancel(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently and return their results in order.

    The first error cancels the other coroutines.

    Raises:
        BaseException: the first error of a coroutine.
    """
    pending = list(coroutines)
    if len(pending) == 1:  # saves the creation of a task
        return [await pending[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in pending]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


class UseCounter:
    """A reference count that can be awaited until it reaches zero.

    Each `with` block is one reference. The counter belongs to one event loop.
    """

    __slots__ = ("_count", "_unused")

    def __init__(self) -> None:
        self._count = 0
        self._unused: asyncio.Future[None] | None = None

    def __enter__(self) -> None:
        self._count += 1

    def __exit__(self, *_: object) -> None:
        self._count -= 1
        if not self._count and self._unused is not None and not self._unused.done():
            self._unused.set_result(None)

    async def wait_until_unused(self) -> None:
        """Wait until the count is zero. No new `with` block may start during the wait."""
        if self._count:
            self._unused = asyncio.get_running_loop().create_future()
            await self._unused
