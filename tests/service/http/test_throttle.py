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


def test_one_pause_a_turn(pauses: list[float]) -> None:
    """However many are refused in it; none where nobody is."""

    async def scenario() -> None:
        throttle = LoopThrottle()
        for turns in (1, 2, 3):
            for _ in range(50):
                throttle.schedule_pause()
            await asyncio.sleep(0)
            assert pauses == [PAUSE_S] * turns
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert pauses == [PAUSE_S] * 3

    asyncio.run(scenario())


def test_who_connects_is_not_kept_waiting(pauses: list[float]) -> None:
    """There may be more of them, and each takes a turn."""

    async def scenario() -> None:
        throttle = LoopThrottle()
        for _ in range(3):
            throttle.record_connection()
            throttle.schedule_pause()
            await asyncio.sleep(0)
        assert not pauses
        throttle.schedule_pause()
        await asyncio.sleep(0)
        assert pauses == [PAUSE_S]

    asyncio.run(scenario())
