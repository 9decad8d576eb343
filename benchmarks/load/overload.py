"""Goodput and latency at five times the capacity for a minute, for docs/deploy.md.

    .venv-dev/bin/python -m benchmarks.load.overload [SECONDS [TIMES]]

The service and the clients have one half of the CPUs each. Clients never sleep, because Linux
charges the wake-up of their CPUs to the service. Each round measures the capacity in a closed loop.
An open loop then loads the service at the capacity. A second open loop loads the service at TIMES
times the capacity. At the end, the round measures the capacity again. Rejected clients ignore
`Retry-After`. The script needs Linux and a quiet machine.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import uvloop

from benchmarks import generated_block
from benchmarks.comparison.machine import hardware
from benchmarks.comparison.process import Server, running
from benchmarks.load.http_load import CLIENTS, Result, closed_loop, open_loop, recover_s

PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"
NAME = "load/overload"
ROUNDS = 3
CAPACITY_S = 10


class Round(NamedTuple):
    """Figures of a round."""

    capacity: float  # requests per second
    closed: Result
    at_capacity: Result
    over: Result
    recovered_s: float


def measure(server: Server, seconds: float, times: float) -> Round:
    """Measure one round."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:

        def load(*arguments: float | str) -> Result:
            return pool.apply(_load, arguments)

        closed = load("closed", server.port, CAPACITY_S)
        before = closed.statuses[200] / CAPACITY_S
        at_capacity = load("open", server.port, before, CAPACITY_S)
        over = load("open", server.port, times * before, seconds)
        recovered_s = pool.apply(_recover_s, (server.port, closed.percentile_ms(0.99)))
        after = load("closed", server.port, CAPACITY_S).statuses[200] / CAPACITY_S
    return Round((before + after) / 2, closed, at_capacity, over, recovered_s)


def _load(loop: str, port: int, *arguments: float) -> Result:
    return uvloop.run((closed_loop if loop == "closed" else open_loop)(port, *arguments))


def _recover_s(port: int, usual_ms: float) -> float:
    return uvloop.run(recover_s(port, usual_ms))


def row(name: str, asked: float, results: list[Result], seconds: float) -> str:
    """Format a row of the table with medians over the rounds."""
    answered = statistics.median(result.statuses[200] / seconds for result in results)
    p50, p99 = (statistics.median(r.percentile_ms(share) for r in results) for share in (0.5, 0.99))
    return f"| {name} | {asked:.0f} | {answered:.0f} | {p50:.0f} | {p99:.0f} |"


def report(rounds: list[Round], seconds: float, times: float) -> list[str]:
    """Format the table and the figures for docs/deploy.md."""
    capacity = statistics.median(each.capacity for each in rounds)
    closed, at_capacity, over = (
        [each.closed for each in rounds],
        [each.at_capacity for each in rounds],
        [each.over for each in rounds],
    )
    goodput = 100 * statistics.median(
        each.over.statuses[200] / seconds / each.capacity for each in rounds
    )
    slower = statistics.median(
        each.over.percentile_ms(0.99) / each.at_capacity.percentile_ms(0.99) for each in rounds
    )
    others = sum((result.statuses for result in over), Counter[int]())
    del others[200]
    silent = sum(each.without_body for each in over)
    broken, unsent = sum(each.failed for each in over), sum(each.unsent for each in over)
    recovered_s = max(each.recovered_s for each in rounds)
    return [
        "| load | sent /s | answered /s | p50 ms | p99 ms |",
        "| :-- | --: | --: | --: | --: |",
        row(f"capacity: {CLIENTS} clients in a closed loop", capacity, closed, CAPACITY_S),
        row("the same rate in an open loop", capacity, at_capacity, CAPACITY_S),
        row(
            f"{times:g} times the rate in an open loop, {seconds:.0f} s",
            times * capacity,
            over,
            seconds,
        ),
        "",
        f"- medians of {len(rounds)} rounds",
        f"- goodput {goodput:.0f} % of capacity",
        f"- p99 of accepted requests: {slower:.2f} times the p99 in an open loop at capacity",
        f"- other responses, by status: {dict(sorted(others.items()))}",
        f"- responses without an error message: {silent}; broken connections: {broken}",
        f"- requests not sent because no connection is free: {unsent}",
        f"- time after the overload to a request within the p99 at capacity: {recovered_s:.2f} s",
    ]


def main() -> None:
    """Print the measurements and write them to docs/deploy.md."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    times = float(sys.argv[2]) if len(sys.argv) > 2 else 5
    usable = sorted(os.sched_getaffinity(0))
    servers, clients = usable[: (len(usable) + 1) // 2], usable[(len(usable) + 1) // 2 :] or usable
    machine = hardware(servers, clients)
    with running([sys.executable, "-m", "fillmask"], servers, NAME) as server:
        os.sched_setaffinity(0, clients)
        before_mb = server.peak_rss_bytes() / 1e6
        rounds = [measure(server, seconds, times) for _ in range(ROUNDS)]
        after_mb = server.peak_rss_bytes() / 1e6
    memory = f"peak memory {before_mb:.0f} MB before, {after_mb:.0f} MB after"
    lines = [*report(rounds, seconds, times), f"- {memory}", f"- {'; '.join(machine)}"]
    print("\n".join(lines))
    generated_block.write(PAGE, NAME, "\n".join(lines))


if __name__ == "__main__":
    main()
