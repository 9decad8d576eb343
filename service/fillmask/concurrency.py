"""asyncio helpers for concurrent coroutines and for reference counts."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def gather_or_cancel(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently and return their results in order.

    The first error cancels the other coroutines. A cancellation of the call has priority over
    errors. The call ends after all coroutines.

    Raises:
        BaseException: the error of the first coroutine that has failed.
    """
    pending = list(coroutines)
    if len(pending) < 2:  # saves the creation of a task
        return [await coroutine for coroutine in pending]
    tasks = [asyncio.create_task(coroutine) for coroutine in pending]
    try:
        # A TaskGroup of Python 3.11 or 3.12 and asyncio.gather drop a cancellation that arrives
        # together with an error.
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        return [task.result() for task in tasks if task.done()]
    except BaseException:
        for task in tasks:
            task.cancel()
        # raises nothing but a cancellation, which then replaces the error
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


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
