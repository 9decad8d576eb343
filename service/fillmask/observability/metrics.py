"""Metrics of the process in Prometheus format.

Gauges of the models' current state are in `fillmask.models.state_collector`.
"""

from collections.abc import Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from fillmask import __version__

# bounds in seconds, from a request with a short text on an idle machine to the default timeout
_REQUEST_SECONDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0),
)
_BATCH_SECONDS = (0.0005, *_REQUEST_SECONDS)
_TOKENS = (8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192)
_SEQUENCES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
_THREADS = (1, 2, 4, 8, 16, 32, 64, 128)

_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
# reasons of rejections, by the status of the response or by the queue of a model
REJECTED_BY_STATUS = {408: "slow_client", 504: "deadline"}
REJECTED_BY_QUEUE = ("queue_full", "wait_too_long")
# of the process, whose log begins before its application
LOG_LINES_DROPPED = Counter(
    "fillmask_log_lines_dropped", "Lines of the log that were dropped.", registry=None
)


def known_method(method: str) -> str:
    """Return a method, or "other" for one that HTTP lacks, which may be any text of a client."""
    return method if method in _METHODS else "other"


class Metrics:
    """Thread-safe metrics of one application.

    Attributes:
        connections: open client connections, 0 until the server sets a function that counts them.
    """

    def __init__(self) -> None:
        # no query needs the time of creation of each series
        disable_created_metrics()  # type: ignore[no-untyped-call] # it has no annotations
        registry = self._registry = CollectorRegistry()

        def counter(name: str, text: str, labels: Sequence[str]) -> Counter:
            return Counter(name, text, labels, registry=registry)

        def histogram(
            name: str, text: str, labels: Sequence[str], bounds: Sequence[float]
        ) -> Histogram:
            return Histogram(name, text, labels, registry=registry, buckets=bounds)

        text = "Version of the service, with the value 1."
        build = Gauge("fillmask_build_info", text, ["version"], registry=registry)
        build.labels(__version__).set(1)
        text = "Open client connections."
        self.connections = Gauge("fillmask_connections", text, registry=registry)
        self.reloads = counter(
            "fillmask_reloads", "Reloads of bundles since the start, by outcome.", ["outcome"]
        )
        self.requests = counter(
            "fillmask_requests",
            "Requests by method, route and HTTP status (499 if the client disconnects).",
            ["method", "route", "status"],
        )
        self.request_seconds = histogram(
            "fillmask_request_seconds",
            "Seconds from the head of a request to the end of its response.",
            ["method", "route"],
            _REQUEST_SECONDS,
        )
        self.rejected = counter(
            "fillmask_rejected",
            "Requests rejected for overload or a timeout, by reason.",
            ["reason", "model"],
        )
        of_model = ["model"]
        self.queue_seconds = histogram(
            "fillmask_queue_seconds",
            "Seconds from the arrival of a pass to the start of its batch.",
            of_model,
            _BATCH_SECONDS,
        )
        self.compute_seconds = histogram(
            "fillmask_compute_seconds",
            "Seconds of the computation of a batch.",
            of_model,
            _BATCH_SECONDS,
        )
        self.batch_tokens = histogram(
            "fillmask_batch_tokens", "Tokens of a batch.", of_model, _TOKENS
        )
        self.batch_sequences = histogram(
            "fillmask_batch_sequences", "Passes of a batch.", of_model, _SEQUENCES
        )
        self.batch_threads = histogram(
            "fillmask_batch_threads",
            "Threads that a batch could use at its start.",
            of_model,
            _THREADS,
        )
        self.passes = counter("fillmask_passes", "Passes that the model has computed.", of_model)
        self.attention_slots = counter(
            "fillmask_attention_slots",
            "Slots that attention has computed, including padding.",
            of_model,
        )
        self.failed_batches = counter("fillmask_failed_batches", "Failed batches.", of_model)
        # 0 from the start, because an alert cannot detect a counter that first appears as 1
        for outcome in ("taken", "refused"):
            self.reloads.labels(outcome)
        for reason in REJECTED_BY_STATUS.values():
            self.rejected.labels(reason, "")
        # `labels` takes longer than a look-up here
        self._by_request: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        registry.register(LOG_LINES_DROPPED)
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)

    def add(self, collector: Collector) -> None:
        """Add metrics that a collector computes at each scrape."""
        self._registry.register(collector)

    def for_model(self, name: str) -> "ModelMetrics":
        """Return the metrics of a model, which a reload of its bundle does not reset."""
        return ModelMetrics(self, name)

    def record_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a completed request.

        Args:
            route: template such as `/models/{name}` and never a path, because the metrics keep all
                routes.
            seconds: time from the head of the request to the end of its response.
        """
        key = known_method(method), route, status
        found = self._by_request.get(key)
        if found is None:
            found = self.requests.labels(*key), self.request_seconds.labels(*key[:2])
            self._by_request[key] = found
        responses, durations = found
        responses.inc()
        durations.observe(seconds)
        if status in REJECTED_BY_STATUS:
            self.rejected.labels(REJECTED_BY_STATUS[status], "").inc()

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return the response body of a scrape and its content type.

        Args:
            accept: Accept header of the scraper, which may ask for OpenMetrics.
        """
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


class ModelMetrics:
    """Thread-safe metrics of the batches of one model."""

    def __init__(self, metrics: Metrics, model: str) -> None:
        self._queue_seconds = metrics.queue_seconds.labels(model)
        self._compute_seconds = metrics.compute_seconds.labels(model)
        self._tokens = metrics.batch_tokens.labels(model)
        self._sequences = metrics.batch_sequences.labels(model)
        self._threads = metrics.batch_threads.labels(model)
        self._passes = metrics.passes.labels(model)
        self._slots = metrics.attention_slots.labels(model)
        self._failures = metrics.failed_batches.labels(model)
        self._rejections = {
            reason: metrics.rejected.labels(reason, model) for reason in REJECTED_BY_QUEUE
        }

    def record_batch(
        self, tokens: int, slots: int, queue_s: Sequence[float], compute_s: float, threads: int = 1
    ) -> None:
        """Count a computed batch.

        Args:
            slots: number of slots in the attention rows of the batch, including padding.
            queue_s: wait of each pass from its admission to the start of the batch, in seconds.
            threads: number of threads that the batch could use at its start.
        """
        for seconds in queue_s:
            self._queue_seconds.observe(seconds)
        self._compute_seconds.observe(compute_s)
        self._tokens.observe(tokens)
        self._sequences.observe(len(queue_s))
        self._threads.observe(threads)
        self._passes.inc(len(queue_s))
        self._slots.inc(slots)

    def record_failure(self) -> None:
        self._failures.inc()

    def record_rejection(self, reason: str) -> None:
        self._rejections[reason].inc()
