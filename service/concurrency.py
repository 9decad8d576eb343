"""Helpers for asyncio: a group of coroutines that fails together, and a count of users."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def gather_or_cancel(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What each returns, in their order.

    Raises:
        BaseException: whatever the first to fail raises; the others have been cancelled.
    """
    every = list(coroutines)
    if len(every) == 1:  # needs no task of its own
        return [await every[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in every]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


class UseCounter:
    """A count of running `with` blocks that can be awaited until it is zero. For one event loop."""

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
        """Wait until the count is zero. No new user may come meanwhile."""
        if self._count:
            self._unused = asyncio.get_running_loop().create_future()
            await self._unused
