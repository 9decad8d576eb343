"""Runs of one seed or of many, on several processes."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count

from tests.simulation.trace import Trace, ViolationError
from tests.simulation.worlds.service import ServiceWorld

REQUESTS = 4_000  # of one seed
_SEEDS_PER_DAY = 100_000


@dataclass(frozen=True)
class Outcome:
    """What has happened in a world.

    Attributes:
        statuses: number of requests by status, 0 without a response.
        faults: number of faults by kind.
        digest: digest of all events, the same for the same seed.
        violation: the broken promise, or None.
        last_events: the last events before the end.
    """

    seed: int
    statuses: Counter[str]
    faults: Counter[str]
    digest: str
    violation: str | None
    last_events: Sequence[str]


def first_seed() -> int:
    """Return the first seed of today, so that the runs of each day are new."""
    return int(datetime.now(UTC).strftime("%Y%m%d")) * _SEEDS_PER_DAY


def run_seed(seed: int, *, show: bool = False) -> Outcome:
    """Run the world of a seed.

    Args:
        show: whether to print each event.
    """
    trace = Trace(show=show)
    world = ServiceWorld(seed, REQUESTS, trace)
    violation = None
    try:
        world.run()
    except ViolationError as error:
        violation = str(error)
    return Outcome(seed, world.statuses, world.faults, trace.digest, violation, trace.last)


def run_seeds(
    seconds: float, seeds: int | None = None, prepare: Callable[[], None] | None = None
) -> Iterator[Outcome]:
    """Run the worlds of today's seeds, on one process for each CPU.

    Args:
        seconds: real seconds after which no further seed starts, unless their number is given.
        seeds: number of seeds.
        prepare: function that each process calls first.
    """
    first, end_s = first_seed(), time.monotonic() + seconds
    processes = os.cpu_count() or 1
    executor = ProcessPoolExecutor(processes, initializer=prepare)
    running: list[Future[Outcome]] = []
    try:
        for seed in count(first) if seeds is None else range(first, first + seeds):
            if len(running) >= 2 * processes:
                yield running.pop(0).result()
            if seeds is None and time.monotonic() > end_s:
                break
            running.append(executor.submit(run_seed, seed))
        for one in running:
            yield one.result()
    finally:
        executor.shutdown(cancel_futures=True)
