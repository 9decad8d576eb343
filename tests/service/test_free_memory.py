"""Free memory goes back to the system after requests that took much."""

import asyncio

import pytest

from service import free_memory


def test_memory_is_returned_after_a_burst_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for requests that take little, nor again while nothing more is taken."""
    taken, returned = 0, 0

    def count() -> None:
        nonlocal returned
        returned += 1

    async def play() -> list[int]:
        nonlocal taken
        counts = []
        task = asyncio.create_task(free_memory.return_after_bursts(lambda: taken))
        for more in (0, free_memory.BURST_BYTES - 1, 1, 0, 2 * free_memory.BURST_BYTES, 0):
            await asyncio.sleep(0.1)
            counts.append(returned)
            taken += more
        await asyncio.sleep(0.1)
        task.cancel()
        return [*counts, returned]

    monkeypatch.setattr(free_memory, "RETURN_EVERY_S", 0.01)
    monkeypatch.setattr(free_memory, "return_free_memory", count)
    assert asyncio.run(play()) == [0, 0, 0, 1, 1, 2, 2]
