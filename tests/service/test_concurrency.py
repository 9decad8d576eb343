"""Groups of coroutines, reference counts, and a loop on a thread."""

import asyncio
import gc
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fillmask.concurrency import BackgroundLoop, gather_or_cancel
from fillmask.models.served_model import UseCounter


class ChildError(Exception):
    """Error of a coroutine of a group."""


@dataclass(frozen=True)
class Child:
    """A coroutine that ends after some iterations of the event loop.

    Attributes:
        iterations: number of iterations before its end.
        fails: whether it fails at its end.
        cleanup: number of iterations that it takes after a cancellation.
        error_in_cleanup: whether it answers a cancellation with an error.
    """

    iterations: int
    fails: bool
    cleanup: int
    error_in_cleanup: bool

    async def run(self, number: int, begun: list[int], ended: list[int]) -> int:
        begun.append(number)
        try:
            for _ in range(self.iterations):
                await asyncio.sleep(0)
            if self.fails:
                raise ChildError(number)
        except asyncio.CancelledError:
            for _ in range(self.cleanup):
                await asyncio.sleep(0)
            if self.error_in_cleanup:
                raise ChildError(number) from None
            raise
        else:
            return number
        finally:
            ended.append(number)


CHILDREN = st.lists(
    st.builds(
        Child, st.integers(0, 6) | st.just(40), st.booleans(), st.integers(0, 3), st.booleans()
    ),
    max_size=5,
)


@given(children=CHILDREN, cancelled_after=st.integers(0, 60))
async def test_each_child_ends_and_no_cancellation_is_lost(
    children: list[Child], cancelled_after: int
) -> None:
    begun: list[int] = []
    ended: list[int] = []
    logged: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))

    async def call() -> list[int]:
        try:
            return await gather_or_cancel(
                child.run(number, begun, ended) for number, child in enumerate(children)
            )
        finally:  # nothing of the group still runs
            assert sorted(begun) == sorted(ended)
            assert len(set(ended)) == len(ended)

    task = asyncio.create_task(call())
    iterations = 0
    while not task.done() and iterations < cancelled_after:
        await asyncio.sleep(0)
        iterations += 1
    was_cancelled = task.cancel()
    await asyncio.wait([task])
    error = None if task.cancelled() else task.exception()
    failing = {number: child.iterations for number, child in enumerate(children) if child.fails}
    if was_cancelled:
        # only a lone coroutine may answer the cancellation itself
        assert task.cancelled() or (len(children) == 1 and isinstance(error, ChildError))
    elif failing:
        # one of those that failed before the group noticed a failure, two iterations later
        assert isinstance(error, ChildError)
        noticed = min(failing.values()) + 2
        assert failing[error.args[0]] <= noticed
        # the others do not go on
        assert iterations <= noticed + 8 + max(child.cleanup for child in children)
        assert task.cancelling() == 0
    else:
        assert task.result() == list(range(len(children)))
        assert sorted(ended) == task.result()
    del task, error
    gc.collect(0)
    assert logged == []


@given(st.lists(st.booleans(), max_size=20), st.integers(0, 20), st.integers(0, 3))
async def test_counter_waits_exactly_until_it_is_unused(
    entries: list[bool], waits_after: int, left_by_error: int
) -> None:
    # True enters a block, and False leaves one. After the start of the wait, none enters.
    uses, depth = UseCounter(), 0
    waiting: asyncio.Task[None] | None = None
    for place, enters in enumerate(entries):
        if place >= waits_after and waiting is None:
            waiting = asyncio.create_task(uses.wait_until_unused())
            await asyncio.sleep(0)
        if enters and waiting is None:
            uses.__enter__()
            depth += 1
        elif not enters and depth:
            error = LookupError() if depth == left_by_error else None
            uses.__exit__(error and type(error), error, None)
            depth -= 1
        await asyncio.sleep(0)
        if waiting is not None:
            await asyncio.sleep(0)
            assert waiting.done() == (depth == 0)
    if waiting is not None:
        for _ in range(depth):
            assert not waiting.done()
            uses.__exit__(None, None, None)
        await asyncio.wait_for(waiting, 1)


async def soon(value: int) -> int:
    await asyncio.sleep(0)
    return value


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
