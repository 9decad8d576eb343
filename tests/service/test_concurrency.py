"""Coroutines of which all or none are of use."""

import asyncio

import pytest

from service.concurrency import gather_or_cancel


async def soon(value: int) -> int:
    """The value, after others had their turn."""
    await asyncio.sleep(0)
    return value


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_all_results_in_order(count: int) -> None:
    """Of none, one or several."""
    assert await gather_or_cancel(map(soon, range(count))) == list(range(count))


async def test_when_one_fails_the_others_end_before_it_is_told() -> None:
    """The caller gets the failure itself, and nothing goes on behind its back."""
    ended = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waiting")

    async def fail() -> None:
        await asyncio.sleep(0)
        raise LookupError

    with pytest.raises(LookupError):
        await gather_or_cancel([wait(), fail(), wait()])
    assert ended == ["waiting", "waiting"]


async def test_a_caller_who_leaves_takes_them_along() -> None:
    """Cancelling the whole cancels each."""
    ended = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waiting")

    task = asyncio.ensure_future(gather_or_cancel([wait(), wait()]))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["waiting", "waiting"]
