"""Counters and histograms of requests, batches and the process."""

import math
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate


class Histogram:
    """Counts values by bucket. Who writes from several threads guards it.

    Attributes:
        total: the sum of the values.

    Args:
        bounds: the largest value of each bucket, ascending; above the last there is one more.
    """

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def record(self, value: float) -> None:
        """Count a value; 0.2 us."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    @property
    def cumulative(self) -> list[tuple[float, int]]:
        """Each bucket's largest value, infinity last, and how many values are not above it."""
        return list(zip((*self._bounds, math.inf), accumulate(self._counts), strict=True))


# from a short text on an idle machine to the default time limit
REQUEST_SECONDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0),
)
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


class RouteStatistics:
    """Requests of one method to one route.

    Attributes:
        seconds: from a request's head to the end of its answer.
        statuses: how many were answered with each HTTP status.
    """

    __slots__ = ("seconds", "statuses")

    def __init__(self) -> None:
        self.seconds = Histogram(REQUEST_SECONDS)
        self.statuses: dict[int, int] = {}

    def record(self, status: int, seconds: float) -> None:
        """Count a request that is over."""
        self.record_rejected(status)
        self.seconds.record(seconds)

    def record_rejected(self, status: int) -> None:
        """Count a request that was refused before anybody looked at it: it took no time."""
        self.statuses[status] = self.statuses.get(status, 0) + 1


class RequestStatistics:
    """Requests by method and route. Written on the event loop alone."""

    def __init__(self) -> None:
        self._routes: dict[tuple[str, str], RouteStatistics] = {}

    def for_route(self, method: str, route: str) -> RouteStatistics:
        """Those of a route.

        Args:
            method: of HTTP; all that nothing here answers are one.
            route: a template such as `/models/{name}`, never a path with what a caller put into it:
                each is kept for good.
        """
        found = self._routes.get((method, route))
        if found is None:
            key = (method if method in _METHODS else "other", route)
            found = self._routes.setdefault(key, RouteStatistics())
        return found

    @property
    def routes(self) -> list[tuple[tuple[str, str], RouteStatistics]]:
        """Each method and route so far."""
        return list(self._routes.items())


BATCH_SECONDS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0),
)
TOKENS = (8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192)
SEQUENCES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """How much a batcher has to do.

    Attributes:
        waiting_tokens: accepted and not answered yet, by lane.
        most_waiting_tokens: above which nothing more is accepted, by lane.
        tokens_per_s: speed of late of all workers together, in large batches; None before one.
        workers: batches computed at the same time.
    """

    waiting_tokens: Mapping[str, int]
    most_waiting_tokens: Mapping[str, int]
    tokens_per_s: float | None
    workers: int


class BatchStatistics:
    """Batches of one model. May be told from several threads, and by several batchers.

    Attributes:
        queue_seconds: of each pass, from its admission to the beginning of its batch.
        compute_seconds: of each batch.
        tokens: of each batch.
        sequences: of each batch.
        slots: in the rows that attention saw, all batches together; those without a token are
            padding.
        failures: batches that could not be computed.
        rejections: passes that were not admitted, by reason.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.queue_seconds = Histogram(BATCH_SECONDS)
        self.compute_seconds = Histogram(BATCH_SECONDS)
        self.tokens = Histogram(TOKENS)
        self.sequences = Histogram(SEQUENCES)
        self.slots = 0
        self.failures = 0
        self.rejections: Counter[str] = Counter()

    def record_batch(
        self, tokens: int, slots: int, queue_s: Iterable[float], compute_s: float
    ) -> None:
        """Count a batch.

        Args:
            tokens: of all its sequences.
            slots: of the rows in which attention saw them.
            queue_s: for how long each sequence has waited.
            compute_s: for how long it was computed.
        """
        with self._lock:
            sequences = 0
            for seconds in queue_s:
                self.queue_seconds.record(seconds)
                sequences += 1
            self.compute_seconds.record(compute_s)
            self.tokens.record(tokens)
            self.sequences.record(sequences)
            self.slots += slots

    def record_failure(self) -> None:
        """Count a batch that failed."""
        with self._lock:
            self.failures += 1

    def record_rejection(self, reason: str) -> None:
        """Count a request that was not admitted."""
        with self._lock:
            self.rejections[reason] += 1


class ProcessStatistics:
    """Plain numbers, filled where things happen and read when somebody asks.

    Attributes:
        requests: of HTTP.
        open_connections: at this moment.
        rejected_connections: those ended before there was a request to answer, by reason.
        reloads: of bundles while the service runs, by outcome.
    """

    def __init__(self) -> None:
        self.requests = RequestStatistics()
        self.open_connections = 0
        self.rejected_connections: Counter[str] = Counter()
        self.reloads: Counter[str] = Counter()
        self._batches: dict[str, BatchStatistics] = {}

    def for_model(self, name: str) -> BatchStatistics:
        """Those of a model; the same ones when it is loaded anew, for counters never go back."""
        return self._batches.setdefault(name, BatchStatistics())

    @property
    def batches(self) -> list[tuple[str, BatchStatistics]]:
        """Each model that there has been."""
        return list(self._batches.items())
