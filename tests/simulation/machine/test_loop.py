"""The virtual loop: time, threads and what it reports."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from tests.simulation.machine.loop import VirtualLoop
from tests.simulation.trace import ViolationError

DAY_S = 86_400.0


def run(main: Callable[[VirtualLoop], Coroutine[Any, Any, None]], seed: int = 1) -> VirtualLoop:
    loop = VirtualLoop(Random(seed))
    loop.run(main(loop))
    return loop


def test_a_day_takes_no_time() -> None:
    async def main(loop: VirtualLoop) -> None:
        await asyncio.sleep(DAY_S)

    started_s = time.monotonic()
    loop = run(main)
    assert loop.now_s > 1000 + DAY_S
    assert time.monotonic() - started_s < 5


def test_two_timers_can_fall_into_one_iteration() -> None:
    def gap(seed: int) -> float:
        times: list[float] = []

        async def main(loop: VirtualLoop) -> None:
            loop.call_later(1.0, lambda: times.append(loop.now_s))
            loop.call_later(1.00005, lambda: times.append(loop.now_s))
            await asyncio.sleep(2)

        run(main, seed)
        return times[1] - times[0]

    gaps = [gap(seed) for seed in range(20)]
    assert 0.0 in gaps
    assert max(gaps) > 0


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


def test_nothing_to_wait_for_is_a_violation() -> None:
    async def main(loop: VirtualLoop) -> None:
        await loop.create_future()

    with pytest.raises(ViolationError, match="waits for ever"):
        run(main)


def test_an_unhandled_error_is_a_violation() -> None:
    async def main(loop: VirtualLoop) -> None:
        loop.call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)

    with pytest.raises(ViolationError, match="ZeroDivisionError"):
        run(main)


def test_the_loop_must_not_block() -> None:
    async def main(loop: VirtualLoop) -> None:
        thread = loop.greenlets.threading.Thread(target=lambda: loop.greenlets.sleep(1))
        thread.start()
        thread.join()

    with pytest.raises(ViolationError, match="event loop blocks"):
        run(main)


def test_a_freeze_delays_everything() -> None:
    async def main(loop: VirtualLoop) -> None:
        loop.call_later(1, loop.freeze, 10)
        await asyncio.sleep(2)

    loop = run(main)
    assert loop.frozen_s == 10
    assert loop.now_s > 1011
