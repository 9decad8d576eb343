"""Pauses of the event loop under overload."""

import asyncio

import pytest

from fillmask.http.throttle import PAUSE_S, LoopThrottle


@pytest.fixture(name="pauses")
def counted_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Lengths of the pauses in seconds, recorded in place of calls of `time.sleep`."""
    pauses: list[float] = []
    monkeypatch.setattr("fillmask.http.throttle.time.sleep", pauses.append)
    return pauses


async def test_one_pause_a_turn(pauses: list[float]) -> None:
    # The number of rejected requests in a turn of the event loop does not matter.
    throttle = LoopThrottle()
    for turns in (1, 2, 3):
        for _ in range(50):
            throttle.schedule_pause()
        await asyncio.sleep(0)
        assert pauses == [PAUSE_S] * turns
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert pauses == [PAUSE_S] * 3


async def test_turn_with_a_new_connection_has_no_pause(pauses: list[float]) -> None:
    # A pause would delay further new connections, because each needs a turn of the event loop.
    throttle = LoopThrottle()
    for _ in range(3):
        throttle.record_connection()
        throttle.schedule_pause()
        await asyncio.sleep(0)
    assert not pauses
    throttle.schedule_pause()
    await asyncio.sleep(0)
    assert pauses == [PAUSE_S]
