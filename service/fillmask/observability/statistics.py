"""Counters and histograms of requests, batches and the process."""

import math
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate


class Histogram:
    """Histogram of values. Writers in several threads must hold a lock.

    Recording a value takes 0.15 to 0.2 us. A histogram of prometheus-client needs 1 us and a lock
    per value. The service uses prometheus-client only to format the counts at a scrape.

    Attributes:
        total: sum of the values.

    Args:
        bounds: largest value of each bucket, in ascending order. An additional bucket counts larger
            values.
    """

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def record(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    @property
    def cumulative(self) -> list[tuple[float, int]]:
        """Upper bounds up to infinity, each with the number of values up to this bound."""
        return list(zip((*self._bounds, math.inf), accumulate(self._counts), strict=True))


# bounds in seconds, from a request with a short text on an idle machine to the default timeout
REQUEST_SECONDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0),
)
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


class RouteStatistics:
    """Statistics of the requests with one HTTP method to one route.

    Attributes:
        seconds: durations from the head of a request to the end of its response.
        statuses: number of responses per HTTP status.
    """

    __slots__ = ("seconds", "statuses")

    def __init__(self) -> None:
        self.seconds = Histogram(REQUEST_SECONDS)
        self.statuses: dict[int, int] = {}

    def record(self, status: int, seconds: float) -> None:
        """Count a completed request."""
        self.record_rejected(status)
        self.seconds.record(seconds)

    def record_rejected(self, status: int) -> None:
        """Count a request that the connection rejected on arrival, without a duration."""
        self.statuses[status] = self.statuses.get(status, 0) + 1


class RequestStatistics:
    """Statistics of requests by method and route, written only on the event loop."""

    def __init__(self) -> None:
        self._routes: dict[tuple[str, str], RouteStatistics] = {}

    def for_route(self, method: str, route: str) -> RouteStatistics:
        """Return the statistics of a route. The first call for a route creates the statistics.

        Args:
            method: HTTP method. Unknown methods share one entry.
            route: template such as `/models/{name}`. Paths with text of clients are not allowed,
                because the table keeps all entries.
        """
        found = self._routes.get((method, route))
        if found is None:
            key = (method if method in _METHODS else "other", route)
            found = self._routes.setdefault(key, RouteStatistics())
        return found

    @property
    def routes(self) -> list[tuple[tuple[str, str], RouteStatistics]]:
        """Statistics by method and route, for every route used so far."""
        return list(self._routes.items())


BATCH_SECONDS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0),
)
TOKENS = (8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192)
SEQUENCES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
THREADS = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """Load of a batcher.

    Attributes:
        waiting_tokens: number of tokens that wait or run, by lane.
        most_waiting_tokens: limit on the tokens that wait or run, by lane.
        tokens_per_s: recent throughput of all workers in large batches. The value is None before
            the first large batch.
    """

    waiting_tokens: Mapping[str, int]
    most_waiting_tokens: Mapping[str, int]
    tokens_per_s: float | None
    workers: int


class BatchStatistics:
    """Thread-safe statistics of the batches of one model.

    Attributes:
        queue_seconds: wait of each pass, from its admission to the start of its batch.
        compute_seconds: duration of each batch.
        tokens: number of tokens in each batch.
        sequences: number of passes in each batch.
        threads: number of threads that each batch could use at its start.
        slots: total slots of the attention rows, including padding.
        failures: number of failed batches.
        rejections: number of requests that the queue rejected, by reason.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.queue_seconds = Histogram(BATCH_SECONDS)
        self.compute_seconds = Histogram(BATCH_SECONDS)
        self.tokens = Histogram(TOKENS)
        self.sequences = Histogram(SEQUENCES)
        self.threads = Histogram(THREADS)
        self.slots = 0
        self.failures = 0
        self.rejections: Counter[str] = Counter()

    def record_batch(
        self,
        tokens: int,
        slots: int,
        queue_s: Iterable[float],
        compute_s: float,
        threads: int = 1,
    ) -> None:
        """Count a computed batch.

        Args:
            tokens: number of tokens in all passes of the batch.
            slots: number of slots in the attention rows of the batch, including padding.
            queue_s: wait of each pass, in seconds.
            compute_s: duration of the computation, in seconds.
            threads: number of threads that the batch could use at its start.
        """
        with self._lock:
            sequences = 0
            for seconds in queue_s:
                self.queue_seconds.record(seconds)
                sequences += 1
            self.compute_seconds.record(compute_s)
            self.tokens.record(tokens)
            self.sequences.record(sequences)
            self.threads.record(threads)
            self.slots += slots

    def record_failure(self) -> None:
        """Count a failed batch."""
        with self._lock:
            self.failures += 1

    def record_rejection(self, reason: str) -> None:
        """Count a request that the queue rejected."""
        with self._lock:
            self.rejections[reason] += 1


class ProcessStatistics:
    """Counters of the process for its metrics.

    Attributes:
        rejected_connections: number of connections that the server rejected or aborted, by reason.
        reloads: number of bundle reloads, by outcome.
    """

    def __init__(self) -> None:
        self.requests = RequestStatistics()
        self.open_connections = 0
        self.rejected_connections: Counter[str] = Counter()
        self.reloads: Counter[str] = Counter()
        self._batches: dict[str, BatchStatistics] = {}

    def for_model(self, name: str) -> BatchStatistics:
        """Return the statistics of a model, which a reload of its bundle does not reset."""
        return self._batches.setdefault(name, BatchStatistics())

    @property
    def batches(self) -> list[tuple[str, BatchStatistics]]:
        """Names and statistics of all models loaded so far."""
        return list(self._batches.items())
