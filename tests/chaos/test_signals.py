"""SIGTERM and SIGKILL under load."""

import asyncio
import signal

import pytest

from tests.chaos.load import asking
from tests.chaos.process import free_port, serving

CLIENTS = 16

pytestmark = [pytest.mark.processes, pytest.mark.slow]


async def test_sigterm_loses_nothing(bundle_flag: str) -> None:
    with serving(bundle_flag) as (process, port):
        async with asking(port, CLIENTS) as outcome:
            await asyncio.sleep(0.2)
            process.send_signal(signal.SIGTERM)
            code = await asyncio.to_thread(process.wait, 20)
    assert code == 0
    assert outcome.lost == 0
    assert set(outcome.statuses) == {200}
    assert outcome.statuses[200] > CLIENTS


async def test_next_process_starts_after_sigkill(bundle_flag: str) -> None:
    # It listens on the same port, which the connections of the killed process still hold.
    port = free_port()
    for _ in range(2):
        with serving(bundle_flag, f"--port={port}") as (process, _):
            async with asking(port, CLIENTS) as outcome:
                await asyncio.sleep(0.5)
                process.kill()
                await asyncio.to_thread(process.wait)
        assert outcome.statuses[200]
