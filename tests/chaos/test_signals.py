"""SIGTERM and SIGKILL under load."""

import asyncio
import os
import signal

import pytest

from tests.chaos.load import Outcome, asking
from tests.chaos.process import free_port, serving

ROUNDS = int(os.environ.get("CHAOS_ROUNDS", "1"))
CLIENTS = 16

pytestmark = [pytest.mark.processes, pytest.mark.slow]


async def under_load(number: signal.Signals, *flags: str) -> tuple[Outcome, int]:
    """Send a signal under load and return the outcome of the requests and the exit code."""
    with serving(*flags) as (process, port):
        async with asking(port, CLIENTS) as outcome:
            await asyncio.sleep(0.2)
            process.send_signal(number)
            code = await asyncio.to_thread(process.wait, 20)
    return outcome, code


async def test_sigterm_loses_nothing(bundle_flag: str) -> None:
    for _ in range(ROUNDS):
        outcome, code = await under_load(signal.SIGTERM, bundle_flag)
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
