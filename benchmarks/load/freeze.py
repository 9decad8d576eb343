"""Answers per second before and after the process is frozen, as by `docker pause`.

    .venv-dev/bin/python -m benchmarks.load.freeze [ROUNDS]

In each round, CLIENTS clients send a short text, each after the response to the previous text.
SIGSTOP freezes a new service for FREEZE_S, and SIGCONT continues it. Rejected clients ignore
`Retry-After`. The clients share the CPUs with the service. The last line compares the last two of
the AFTER_S seconds after the freeze with the seconds before the freeze.
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import sys
from subprocess import Popen
from typing import NamedTuple

import uvloop

from benchmarks.comparison.process import HOST
from benchmarks.load.http_load import WARM_UP_S, Result, Wire, encode_request
from benchmarks.running_server import running_server

CLIENTS = 64
TEXT = "Paris is the [MASK] of France."
BEFORE_S, FREEZE_S, AFTER_S = 8, 20, 9


class Second(NamedTuple):
    """Responses in one second."""

    answered: int
    rejected: int


def main() -> None:
    """Print the answers and rejections of each second and the ratio after / before."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    ratios = []
    print("| | before /s | rejected before | answered in each second after | rejected after |")
    print("|---|--:|--:|---|--:|")
    for number in range(1, rounds + 1):
        load_1_min = os.getloadavg()[0]
        with running_server() as server:
            before, after = uvloop.run(freeze(server.process, int(server.url.rpartition(":")[2])))
        usual = statistics.mean(second.answered for second in before)
        ratios.append(statistics.mean(second.answered for second in after[-2:]) / usual)
        print(
            f"| round {number}, load average {load_1_min:.2f} | {usual:.0f} "
            f"| {sum(second.rejected for second in before)} "
            f"| {', '.join(str(second.answered) for second in after)} "
            f"| {sum(second.rejected for second in after)} |",
            flush=True,
        )
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"\nlast two seconds / before: {statistics.median(ratios):.2f} (median of {each})")


async def freeze(process: Popen[str], port: int) -> tuple[list[Second], list[Second]]:
    """Load a service, freeze it and continue it.

    Returns:
        The seconds before and after the freeze.
    """
    result = Result()
    loop = asyncio.get_running_loop()
    for _ in range(CLIENTS):
        _, wire = await loop.create_connection(
            lambda: Wire(result, None, [encode_request(TEXT)]), HOST, port
        )
        wire.send()
    await asyncio.sleep(WARM_UP_S)
    before = await seconds(result, BEFORE_S)
    process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(FREEZE_S)
    process.send_signal(signal.SIGCONT)
    after = await seconds(result, AFTER_S)
    if result.failed:
        raise SystemExit(f"no connection may fail (got {result.failed} lost requests)")
    return before, after


async def seconds(result: Result, count: int) -> list[Second]:
    """Count the responses of the next seconds."""
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    counted = []
    for number in range(1, count + 1):
        result.clear()
        await asyncio.sleep(begun_s + number - loop.time())
        answered = result.statuses[200]
        counted.append(Second(answered, result.statuses.total() - answered))
    return counted


if __name__ == "__main__":
    main()
