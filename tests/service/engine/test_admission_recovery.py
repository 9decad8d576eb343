"""Recovery of the admission after a wrong estimate of the throughput, in simulated time."""

import heapq
import itertools
import math
from collections import Counter
from typing import NamedTuple

import pytest

from fillmask.engine.admission import Admission, Throughput
from fillmask.engine.batch_formation import LaneQueue, batch_budget
from fillmask.errors import OverloadedError

MAX_BATCH_TOKENS = 192
MAX_WAIT_S = 0.35
TEXT_TOKENS = 8
CLIENTS_PER_WORKER = 48
RETRY_S = 0.01
# A batch takes a fixed time and a time per token, as in benchmarks/load/capacity.py.
BATCH_S, TOKEN_S = 0.002, 0.0001
TRUE_TOKENS_PER_S = MAX_BATCH_TOKENS / (BATCH_S + MAX_BATCH_TOKENS * TOKEN_S)
WORKERS = pytest.mark.parametrize("workers", [1, 2, 16])


class Text(NamedTuple):
    """A text that a client sent."""

    sent_s: float
    bulk: bool = False
    tokens: int = TEXT_TOKENS


class Simulation:
    """Closed loop of clients with short texts in front of workers with the service's rules.

    Args:
        bulk_passes: number of waiting passes in the bulk lane, which never becomes empty.
    """

    def __init__(self, workers: int, bulk_passes: int = 0) -> None:
        self.admission = Admission(workers, MAX_BATCH_TOKENS, 32768, 262144, MAX_WAIT_S)
        self.admission.throughput.record(MAX_BATCH_TOKENS, self.batch_s(MAX_BATCH_TOKENS))
        self.slowdown = 1.0
        self.counts: Counter[str] = Counter()
        self.longest_wait_s = 0.0
        self._workers = self._idle = workers
        self._queue: LaneQueue[Text] = LaneQueue(lambda text: text.tokens)
        self._now_s = 0.0
        self._numbers = itertools.count()
        # ends of batches, with their start and threads, and attempts of clients without a batch
        self._events: list[tuple[float, int, float, int, list[Text]]] = []
        for _ in range(CLIENTS_PER_WORKER * workers):
            self._push(0.0)
        for _ in range(bulk_passes):
            self._accept(Text(0.0, bulk=True, tokens=MAX_BATCH_TOKENS))

    @property
    def tokens_per_s(self) -> float:
        """Estimated throughput of one worker."""
        estimate = self.admission.throughput.tokens_per_s
        assert estimate is not None
        return estimate

    def batch_s(self, tokens: int) -> float:
        """Return the duration of a batch on one thread."""
        return BATCH_S + tokens * TOKEN_S

    def freeze(self, seconds: float) -> None:
        """Stop all workers and clients, but not the clock."""
        self._now_s += seconds
        self._events = [(event[0] + seconds, *event[1:]) for event in self._events]

    def run(self, *, seconds: float = math.inf, batches: int | None = None) -> None:
        """Continue for some time or for a number of interactive batches, with new counts."""
        self.counts.clear()
        self.longest_wait_s = 0.0
        end_s = self._now_s + seconds
        while self._events[0][0] < end_s and self.counts["batches"] != batches:
            self._now_s, _, started_s, threads, batch = heapq.heappop(self._events)
            if batch:
                self._end_batch(started_s, threads, batch)
            else:
                self._send()
            self._start_batches()
            assert self.admission.tokens >= 0
        if batches is None:
            self._now_s = end_s

    def _send(self) -> None:
        idle = self.admission.load.waiting_tokens["interactive"] == 0
        try:
            self._accept(Text(self._now_s))
        except OverloadedError:
            assert not idle
            self.counts["rejected"] += 1
            self._push(self._now_s + RETRY_S)

    def _accept(self, text: Text) -> None:
        self.admission.accept(text.tokens, bulk=text.bulk)
        self._queue.extend([text], bulk=text.bulk)

    def _start_batches(self) -> None:
        while self._idle and self._queue:
            budget = batch_budget(self.admission.tokens, self._workers, MAX_BATCH_TOKENS)
            batch = self._queue.next_batch(budget)
            threads = self._idle  # a run uses the CPUs of the idle workers
            duration_s = self.batch_s(sum(text.tokens for text in batch)) * self.slowdown
            duration_s /= 1 + 0.3 * (threads - 1)
            self._idle -= 1
            self._push(self._now_s + duration_s, threads, batch)
            if not batch[0].bulk:
                wait_s = self._now_s - batch[0].sent_s
                self.longest_wait_s = max(self.longest_wait_s, wait_s)

    def _end_batch(self, started_s: float, threads: int, batch: list[Text]) -> None:
        self._idle += 1
        tokens = sum(text.tokens for text in batch)
        self.admission.release(tokens, bulk=batch[0].bulk)
        if batch[0].bulk:
            for text in batch:
                self._accept(text)
            return
        self.admission.throughput.record(tokens, self._now_s - started_s, threads)
        self.counts["batches"] += 1
        for _ in batch:
            self.counts["answered"] += 1
            self._push(self._now_s)

    def _push(self, at_s: float, threads: int = 0, batch: list[Text] | None = None) -> None:
        heapq.heappush(self._events, (at_s, next(self._numbers), self._now_s, threads, batch or []))


def wrong(tokens_per_s: float) -> Throughput:
    """Return a wrong estimate of long experience."""
    throughput = Throughput(MAX_BATCH_TOKENS // 2)
    for _ in range(100):
        throughput.record(MAX_BATCH_TOKENS, MAX_BATCH_TOKENS / tokens_per_s)
    return throughput


@WORKERS
def test_answers_return_after_a_freeze(workers: int) -> None:
    # One stalled batch of each worker has reduced the estimate. SIGSTOP, `docker pause` and the
    # migration of a virtual machine freeze a process.
    service = Simulation(workers)
    service.run(seconds=4)
    before = service.counts["answered"]
    service.freeze(20)
    service.run(seconds=1)
    service.run(seconds=4)
    assert service.counts["answered"] >= 0.95 * before
    assert service.counts["rejected"] == 0


@WORKERS
@pytest.mark.parametrize("bulk_passes", [0, 200])
@pytest.mark.parametrize("tokens_per_s", [1e-9, 1, 1e9])
def test_any_wrong_estimate_is_corrected(
    tokens_per_s: float, bulk_passes: int, workers: int
) -> None:
    # Each batch corrects the estimate by about a tenth, so the number of batches is logarithmic.
    service = Simulation(workers, bulk_passes)
    service.run(seconds=1)
    true = service.tokens_per_s
    service.admission.throughput = wrong(tokens_per_s)
    service.run(batches=400)
    assert service.tokens_per_s == pytest.approx(true, rel=0.2)
    service.run(batches=100)
    assert service.counts["rejected"] == 0


@WORKERS
def test_slower_machine_is_noticed(workers: int) -> None:
    # The limit on the wait then holds at the new throughput.
    service = Simulation(workers)
    service.run(seconds=1)
    true = service.tokens_per_s
    service.slowdown = 5
    service.run(batches=30 + workers)  # the batches in progress have the old throughput
    assert service.tokens_per_s == pytest.approx(true / 5, rel=0.1)
    service.run(seconds=5)
    assert service.longest_wait_s < MAX_WAIT_S + 5 * service.batch_s(MAX_BATCH_TOKENS)
    service.slowdown = 1
    service.run(batches=60 + workers)
    assert service.tokens_per_s == pytest.approx(true, rel=0.1)


def test_stalled_batch_lowers_the_estimate_little() -> None:
    # The duration of a batch includes a pause of the process, which says nothing about later
    # batches.
    throughput = wrong(1000)
    throughput.record(MAX_BATCH_TOKENS, 20)
    assert throughput.tokens_per_s == pytest.approx(1000 / 1.3, rel=1e-3)


def test_frequent_stalls_count() -> None:
    # The kernel stops a container at its CPU limit in each period.
    throughput = wrong(1000)
    durations_s = [0.192, 0.192, 10]
    for seconds in durations_s * 50:
        throughput.record(MAX_BATCH_TOKENS, seconds)
    mean = 3 * MAX_BATCH_TOKENS / sum(durations_s)
    assert throughput.tokens_per_s == pytest.approx(mean, rel=0.2)


@pytest.mark.parametrize(("tokens", "threads"), [(8, 1), (8, 2), (192, 2)])
def test_other_batches_correct_an_estimate_that_is_too_low(tokens: int, threads: int) -> None:
    # The estimate is their mean, because the fastest of them may be an exception.
    throughput = wrong(1)
    for tokens_per_s in (1100, 900) * 100:
        throughput.record(tokens, tokens / (tokens_per_s * threads), threads)
    assert throughput.tokens_per_s == pytest.approx(1000, rel=0.05)
