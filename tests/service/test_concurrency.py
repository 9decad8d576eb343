"""Groups of coroutines and reference counts."""

import asyncio
import contextlib
import gc

import pytest

from fillmask.concurrency import BackgroundLoop, UseCounter, gather_or_cancel


async def soon(value: int) -> int:
    await asyncio.sleep(0)
    return value


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_all_results_in_order(count: int) -> None:
    assert await gather_or_cancel(map(soon, range(count))) == list(range(count))


async def test_failure_ends_the_others_before_it_is_raised() -> None:
    # At the time of the error, no coroutine of the group still runs.
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


async def test_cancelling_the_group_cancels_each() -> None:
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


async def test_cancellation_has_priority_over_an_error() -> None:
    # The cancellation arrives in each iteration of the event loop from the start to the end of the
    # call, so also in the iterations of the error and of the wait for the other coroutine.
    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)

    async def fail() -> None:
        await asyncio.sleep(0)
        raise LookupError

    for iterations in range(1, 20):
        task = asyncio.create_task(gather_or_cancel([wait(), fail()]))
        for _ in range(iterations):
            await asyncio.sleep(0)
        if not task.cancel():
            break
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelling() == 1
    with pytest.raises(LookupError):
        task.result()
    assert iterations > 4


async def test_error_leaves_no_pending_cancellation() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise LookupError

    task = asyncio.current_task()
    assert task is not None
    with pytest.raises(LookupError):
        await gather_or_cancel([asyncio.Event().wait(), fail()])
    assert task.cancelling() == 0


async def test_only_the_first_of_several_errors_is_reported() -> None:
    # asyncio logs errors of tasks that nothing has read.
    async def fail(error: Exception) -> None:
        await asyncio.sleep(0)
        raise error

    logged: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))
    with pytest.raises(KeyError):
        await gather_or_cancel(map(fail, [KeyError(), IndexError(), ValueError()]))
    gc.collect()
    assert logged == []


async def test_counter_waits_for_all_uses() -> None:
    # If nothing uses the counter, the wait ends immediately.
    uses, said = UseCounter(), []
    await uses.wait_until_unused()

    async def use(seconds: float) -> None:
        with uses:
            await asyncio.sleep(seconds)
            said.append("used")
            with contextlib.suppress(LookupError), uses:
                raise LookupError

    async def wait() -> None:
        await uses.wait_until_unused()
        said.append("none")

    async with asyncio.TaskGroup() as group:
        group.create_task(use(0.02))
        group.create_task(use(0.01))
        await asyncio.sleep(0)
        group.create_task(wait())
    assert said == ["used", "used", "none"]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), OSError()])
def test_an_error_ends_its_coroutine_and_not_the_loop(error: BaseException) -> None:
    loop = BackgroundLoop("errors")

    async def fail() -> None:
        await gather_or_cancel([soon(1), raise_it()])

    async def raise_it() -> int:
        await asyncio.sleep(0)
        raise error

    for _ in range(2):
        with pytest.raises(type(error)):
            loop.run(fail())
        assert loop.run(soon(2)) == 2
    loop.close()
