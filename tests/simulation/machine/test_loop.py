"""The virtual loop: time, threads and what it reports."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from tests.simulation.machine.loop import VirtualLoop
from tests.simulation.trace import ViolationError


def run(main: Callable[[VirtualLoop], Coroutine[Any, Any, None]]) -> None:
    loop = VirtualLoop(Random(1))
    loop.run(main(loop))


def test_threads_wait_on_virtual_time() -> None:
    events: list[str] = []

    async def main(loop: VirtualLoop) -> None:
        simulated = loop.greenlets.threading
        lock = simulated.Lock()
        condition = simulated.Condition(lock)

        def work() -> None:
            with lock:
                events.append("waits")
                condition.wait()
                events.append("woken")
            loop.greenlets.sleep(5)
            loop.call_soon_threadsafe(events.append, "worked")

        thread = simulated.Thread(target=work)
        thread.start()
        await asyncio.sleep(1)
        with lock:
            condition.notify()
        begun_s = loop.now_s
        await asyncio.to_thread(thread.join)
        assert 5 < loop.now_s - begun_s < 6
        assert threading.active_count() == before

    before = threading.active_count()
    run(main)
    assert events == ["waits", "woken", "worked"]


async def _wait_for_ever(loop: VirtualLoop) -> None:
    await loop.create_future()


async def _raise(loop: VirtualLoop) -> None:
    loop.call_soon(lambda: 1 // 0)
    await asyncio.sleep(1)


async def _block(loop: VirtualLoop) -> None:
    thread = loop.greenlets.threading.Thread(target=lambda: loop.greenlets.sleep(1))
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    ("main", "message"),
    [
        (_wait_for_ever, "waits for ever"),
        (_raise, "ZeroDivisionError"),
        (_block, "event loop blocks"),
    ],
)
def test_violations(main: Callable[[VirtualLoop], Coroutine[Any, Any, None]], message: str) -> None:
    with pytest.raises(ViolationError, match=message):
        run(main)
