"""Metrics of the process in Prometheus format."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from fillmask import __version__
from fillmask.host import memory_limit_bytes
from fillmask.observability.statistics import (
    BatchStatistics,
    Histogram,
    ProcessStatistics,
    QueueLoad,
)

_MODEL = ("model",)
_ROUTE = ("method", "route")
_OVERDUE = 504
# shown as 0 from the start, because an alert cannot detect a counter that first appears as 1
REJECTED_CONNECTIONS = ("connections", "slow_client", "large_head", "not_http")
REJECTED_REQUESTS = ("queue_full", "wait_too_long")


@dataclass(frozen=True, slots=True)
class ModelState:
    """Current state of a served model.

    Attributes:
        labels: additional labels of the model's info metric, such as the precision.
        failure: reason why the last probe of the model failed, or None without a failure.
    """

    name: str
    labels: Mapping[str, str]
    load: QueueLoad
    failure: str | None


class Metrics:
    """Metrics of the process, collected at each scrape.

    Args:
        models: function that returns the states of the served models.
        not_ready_reason: function that returns the reason why the service is not ready. The reason
            is None if the service is ready.
    """

    def __init__(
        self,
        statistics: ProcessStatistics,
        models: Callable[[], Sequence[ModelState]],
        not_ready_reason: Callable[[], str | None],
    ) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Service(statistics, models, not_ready_reason))
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return the response body of a scrape and its content type.

        Args:
            accept: Accept header of the scraper, which may ask for OpenMetrics.
        """
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


class _Service(Collector):
    """Collector of the service's own metrics."""

    def __init__(
        self,
        statistics: ProcessStatistics,
        models: Callable[[], Sequence[ModelState]],
        not_ready_reason: Callable[[], str | None],
    ) -> None:
        self._statistics = statistics
        self._models = models
        self._not_ready_reason = not_ready_reason
        self._memory_limit_bytes = memory_limit_bytes()

    def collect(self) -> Iterable[Metric]:
        """Yield the current value of every metric."""
        models = self._models()
        ready = self._not_ready_reason() is None and all(model.failure is None for model in models)
        yield from self._of_process(ready=ready)
        yield from self._of_requests()
        yield from _of_models(models)
        yield from _of_batches(self._statistics.batches)

    def _of_process(self, *, ready: bool) -> Iterable[Metric]:
        statistics = self._statistics
        build = GaugeMetricFamily(
            "fillmask_build_info", "Version of the service, with the value 1.", labels=["version"]
        )
        build.add_metric([__version__], 1)
        yield build
        text = "1 if the last readiness check reports a ready service, else 0."
        yield GaugeMetricFamily("fillmask_ready", text, value=ready)
        text = "Open client connections."
        yield GaugeMetricFamily("fillmask_connections", text, value=statistics.open_connections)
        reloads = CounterMetricFamily(
            "fillmask_reloads",
            "Reloads of bundles since the start, by outcome.",
            labels=["outcome"],
        )
        for outcome in ("taken", "refused"):
            reloads.add_metric([outcome], statistics.reloads[outcome])
        yield reloads
        limit = GaugeMetricFamily(
            "fillmask_memory_limit_bytes",
            "Memory limit of the process (absent without a limit).",
        )
        if self._memory_limit_bytes is not None:
            limit.add_metric([], self._memory_limit_bytes)
        yield limit

    def _of_requests(self) -> Iterable[Metric]:
        responses = CounterMetricFamily(
            "fillmask_requests",
            "Requests by method, route and HTTP status (499 if the client disconnects).",
            labels=[*_ROUTE, "status"],
        )
        seconds = HistogramMetricFamily(
            "fillmask_request_seconds",
            "Seconds from the head of a request to the end of its response.",
            labels=_ROUTE,
        )
        overdue = 0
        for route, one in self._statistics.requests.routes:
            for status, count in list(one.statuses.items()):
                responses.add_metric([*route, str(status)], count)
                overdue += count if status == _OVERDUE else 0
            _add(seconds, route, one.seconds)
        yield responses
        yield seconds
        yield self._rejected(overdue)

    def _rejected(self, overdue: int) -> Metric:
        rejected = CounterMetricFamily(
            "fillmask_rejected",
            "Requests and connections rejected for overload, a timeout or invalid HTTP, by reason.",
            labels=["reason", "model"],
        )
        rejected.add_metric(["deadline", ""], overdue)
        for reason in REJECTED_CONNECTIONS:
            rejected.add_metric([reason, ""], self._statistics.rejected_connections[reason])
        for model, one in self._statistics.batches:
            for reason in REJECTED_REQUESTS:
                rejected.add_metric([reason, model], one.rejections[reason])
        return rejected


def _of_models(models: Sequence[ModelState]) -> Iterable[Metric]:
    labels = sorted({label for model in models for label in model.labels})
    info = GaugeMetricFamily(
        "fillmask_model_info", "A served model, with the value 1.", labels=["model", *labels]
    )
    waiting = GaugeMetricFamily(
        "fillmask_waiting_tokens",
        "Tokens that wait or run, by lane.",
        labels=["model", "lane"],
    )
    most = GaugeMetricFamily(
        "fillmask_waiting_tokens_limit",
        "Limit on the tokens that wait or run, by lane.",
        labels=["model", "lane"],
    )
    speed = GaugeMetricFamily(
        "fillmask_tokens_per_second",
        "Recent throughput of all workers in large batches (absent before the first large batch).",
        labels=_MODEL,
    )
    workers = GaugeMetricFamily(
        "fillmask_workers", "Worker threads that compute batches.", labels=_MODEL
    )
    for model in models:
        info.add_metric([model.name, *(model.labels[label] for label in labels)], 1)
        for lane, tokens in model.load.waiting_tokens.items():
            waiting.add_metric([model.name, lane], tokens)
        for lane, tokens in model.load.most_waiting_tokens.items():
            most.add_metric([model.name, lane], tokens)
        if model.load.tokens_per_s is not None:
            speed.add_metric([model.name], model.load.tokens_per_s)
        workers.add_metric([model.name], model.load.workers)
    return info, waiting, most, speed, workers


def _of_batches(batches: Sequence[tuple[str, BatchStatistics]]) -> Iterable[Metric]:
    queue = HistogramMetricFamily(
        "fillmask_queue_seconds",
        "Seconds from the arrival of a pass to the start of its batch.",
        labels=_MODEL,
    )
    compute = HistogramMetricFamily(
        "fillmask_compute_seconds", "Seconds of the computation of a batch.", labels=_MODEL
    )
    tokens = HistogramMetricFamily("fillmask_batch_tokens", "Tokens of a batch.", labels=_MODEL)
    sequences = HistogramMetricFamily(
        "fillmask_batch_sequences", "Passes of a batch.", labels=_MODEL
    )
    threads = HistogramMetricFamily(
        "fillmask_batch_threads",
        "Threads that a batch could use at its start.",
        labels=_MODEL,
    )
    passes = CounterMetricFamily(
        "fillmask_passes", "Passes that the model has computed.", labels=_MODEL
    )
    slots = CounterMetricFamily(
        "fillmask_attention_slots",
        "Slots that attention has computed, including padding.",
        labels=_MODEL,
    )
    failures = CounterMetricFamily("fillmask_failed_batches", "Failed batches.", labels=_MODEL)
    for model, one in batches:
        _add(queue, [model], one.queue_seconds)
        _add(compute, [model], one.compute_seconds)
        _add(tokens, [model], one.tokens)
        _add(sequences, [model], one.sequences)
        _add(threads, [model], one.threads)
        passes.add_metric([model], one.sequences.total)
        slots.add_metric([model], one.slots)
        failures.add_metric([model], one.failures)
    return queue, compute, tokens, sequences, threads, passes, slots, failures


def _add(family: HistogramMetricFamily, labels: Sequence[str], histogram: Histogram) -> None:
    buckets = [
        ("+Inf" if bound == math.inf else str(float(bound)), count)
        for bound, count in histogram.cumulative
    ]
    family.add_metric(labels, buckets, histogram.total)
