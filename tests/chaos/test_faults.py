"""Signals, clients that disconnect, logs that cannot be written, and clocks that jump."""

import asyncio
import contextlib
import os
import signal

import pytest

from tests.chaos.load import BODY, Client, Outcome, asking
from tests.chaos.process import free_port, serving
from tests.chaos.requests import post

pytestmark = [pytest.mark.processes, pytest.mark.slow]
CLIENTS, VANISHING = 16, 8
ATTEMPTS = 30  # of each client that disconnects

# the service with a clock that jumps by a week, back or ahead
CLOCKLESS = """
import itertools, sys, time
now, jumps = time.time, itertools.cycle((-604800, 604800, 0))
time.time = lambda: now() + next(jumps)
from fillmask.__main__ import main
sys.exit(main())
"""

# The service with a model that fails on batches of two texts, and a log on a full disk.
FULL_DISK = """
import os, sys
os.dup2(os.open("/dev/full", os.O_WRONLY), 2)
from fillmask.engine.runtime import Runtime
run = Runtime.run
def fail(self, batch):
    if len(batch.passes) == 2:
        raise ValueError
    return run(self, batch)
Runtime.run = fail
from fillmask.__main__ import main
sys.exit(main())
"""


async def vanish(port: int) -> None:
    """Connect, send all or half of a request and disconnect, again and again."""
    request = post("/fill-mask", BODY)
    for times in range(ATTEMPTS):
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request[: len(request) // (1 + times % 2)])
            await writer.drain()
            await asyncio.sleep(0.001 * (times % 5))
            writer.transport.abort()


async def test_clients_that_disconnect_do_not_harm_others(bundle_flag: str) -> None:
    with serving(bundle_flag) as (process, port):
        async with asking(port, 4) as outcome:
            await asyncio.gather(*(vanish(port) for _ in range(VANISHING)))
        process.send_signal(signal.SIGTERM)
        # unfinished requests would delay the exit by the grace period
        assert process.wait(15) == 0
    assert set(outcome.statuses) == {200}
    assert outcome.lost == outcome.refused == 0


async def ask_well(code: str, bundle_flag: str, *bodies: bytes) -> list[Outcome]:
    """Return the outcome of each request to a service that `code` starts.

    The service must exit with status 0 after SIGTERM.
    """
    outcomes = []
    with serving(bundle_flag, code=code) as (process, port):
        for body in bodies:
            outcomes.append(Outcome())
            client = Client(port, outcomes[-1], body)
            assert await client.ask()
            client.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    return outcomes


async def test_clock_that_jumps_changes_nothing(bundle_flag: str) -> None:
    # Timeouts, drains and throughput use a monotonic clock.
    outcomes = await ask_well(CLOCKLESS, bundle_flag, *[BODY] * 20)
    assert all(one.statuses == {200: 1} for one in outcomes)


async def test_log_that_cannot_be_written_changes_nothing(bundle_flag: str) -> None:
    assert os.path.exists("/dev/full")  # noqa: ASYNC240, PTH110 - there is nothing to read
    two = b'{"inputs": ["a [MASK]", "the [MASK]"]}'
    failed, *others = await ask_well(FULL_DISK, bundle_flag, two, BODY, BODY)
    # the service computes each text of a failed batch alone
    assert failed.statuses == {200: 1}
    assert all(one.statuses == {200: 1} for one in others)


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
