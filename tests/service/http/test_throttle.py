"""The pauses of an event loop that refuses."""

import asyncio

import pytest

from service.http.throttle import PAUSE_S, LoopThrottle


@pytest.fixture(name="pauses")
def counted_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The length of each pause, in the place of the pauses."""
    pauses: list[float] = []
    monkeypatch.setattr("service.http.throttle.time.sleep", pauses.append)
    return pauses


async def test_one_pause_a_turn(pauses: list[float]) -> None:
    """However many are refused in it; none where nobody is."""
    breath = LoopThrottle()
    for turns in (1, 2, 3):
        for _ in range(50):
            breath.take()
        await asyncio.sleep(0)
        assert pauses == [PAUSE_S] * turns
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert pauses == [PAUSE_S] * 3


async def test_who_connects_is_not_kept_waiting(pauses: list[float]) -> None:
    """There may be more of them, and each takes a turn."""
    breath = LoopThrottle()
    for _ in range(3):
        breath.note_connection()
        breath.take()
        await asyncio.sleep(0)
    assert not pauses
    breath.take()
    await asyncio.sleep(0)
    assert pauses == [PAUSE_S]
