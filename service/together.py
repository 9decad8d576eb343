"""Several coroutines at once, of which all or none are of use."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def together(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
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
