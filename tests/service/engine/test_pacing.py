"""Feeding of the requests of one call to a batcher."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from fillmask.engine.pacing import QueueFeed


async def test_the_first_error_cancels_the_later_requests() -> None:
    idle_batcher: Any = SimpleNamespace(accepted_tokens=0)
    all_started = asyncio.Event()
    cancelled = []

    async def request(number: int) -> None:
        if number == 0:
            await all_started.wait()
            raise ValueError("a bad text")
        try:
            if number == 3:
                all_started.set()
            await asyncio.Event().wait()
        finally:
            cancelled.append(number)

    with pytest.raises(ValueError, match="a bad text"):
        async with asyncio.timeout(20):
            await QueueFeed(idle_batcher, 1).map(request, range(4))
    assert cancelled == [1, 2, 3]
