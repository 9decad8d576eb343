"""Metrics in the text format of Prometheus."""

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from fillmask.observability.metrics import Metrics, ModelState
from fillmask.observability.statistics import ProcessStatistics, QueueLoad
from tests.service.scrape import Samples, samples, value

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
LOAD = QueueLoad({"interactive": 12, "bulk": 34}, {"interactive": 100, "bulk": 1000}, 5000.0, 2)


def state(failure: str | None = None, load: QueueLoad = LOAD) -> ModelState:
    """Return the state of a model with a name that needs escaping."""
    return ModelState('a "model"', {"precision": "int8", "d_model": "384"}, load, failure)


def scraped(
    statistics: ProcessStatistics, *models: ModelState, reason: str | None = None
) -> Samples:
    """Return all samples of an exposition by name and labels."""
    content, content_type = Metrics(statistics, lambda: models, lambda: reason).render("")
    assert content_type.startswith("text/plain")
    return samples(content.decode())


def test_requests() -> None:
    # The service counts requests by status and measures durations by route.
    statistics = ProcessStatistics()
    statistics.requests.for_route("POST", "/models/{name}").record(200, 0.004)
    statistics.requests.for_route("POST", "/models/{name}").record(504, 30.0)
    found = scraped(statistics)
    route = {"method": "POST", "route": "/models/{name}"}
    assert value(found, "fillmask_requests_total", **route, status="200") == 1
    assert value(found, "fillmask_requests_total", **route, status="504") == 1
    assert value(found, "fillmask_request_seconds_bucket", **route, le="0.0025") == 0
    assert value(found, "fillmask_request_seconds_bucket", **route, le="0.005") == 1
    assert value(found, "fillmask_request_seconds_bucket", **route, le="+Inf") == 2
    assert value(found, "fillmask_request_seconds_count", **route) == 2
    assert value(found, "fillmask_request_seconds_sum", **route) == 30.004


def test_rejections_have_a_reason() -> None:
    # The reasons are connection limits, the queue of a model and timeouts.
    statistics = ProcessStatistics()
    statistics.rejected_connections["slow_client"] += 2
    statistics.for_model("m").record_rejection("queue_full")
    statistics.requests.for_route("GET", "/a").record(504, 1)
    statistics.requests.for_route("GET", "/b").record(504, 1)
    found = scraped(statistics)
    name = "fillmask_rejected_total"
    assert value(found, name, reason="slow_client", model="") == 2
    assert value(found, name, reason="queue_full", model="m") == 1
    assert value(found, name, reason="deadline", model="") == 2
    # Prometheus sees an increase only from an existing value
    assert (name, frozenset({("reason", "wait_too_long"), ("model", "m")})) in found


def test_batches() -> None:
    # The metrics count slots without a token as padding.
    statistics = ProcessStatistics()
    statistics.for_model("m").record_batch(30, 40, queue_s=[0.1, 0.2], compute_s=0.5, threads=3)
    statistics.for_model("m").record_failure()
    found = scraped(statistics)
    assert value(found, "fillmask_attention_slots_total", model="m") == 40
    assert value(found, "fillmask_batch_tokens_sum", model="m") == 30
    assert value(found, "fillmask_batch_sequences_sum", model="m") == 2
    assert value(found, "fillmask_batch_threads_sum", model="m") == 3
    assert value(found, "fillmask_passes_total", model="m") == 2
    assert value(found, "fillmask_queue_seconds_count", model="m") == 2
    assert value(found, "fillmask_compute_seconds_sum", model="m") == 0.5
    assert value(found, "fillmask_failed_batches_total", model="m") == 1


def test_models() -> None:
    found = scraped(ProcessStatistics(), state())
    name = 'a "model"'
    assert value(found, "fillmask_waiting_tokens", model=name, lane="interactive") == 12
    assert value(found, "fillmask_waiting_tokens_limit", model=name, lane="bulk") == 1000
    assert value(found, "fillmask_tokens_per_second", model=name) == 5000
    assert value(found, "fillmask_workers", model=name) == 2
    about = {"model": name, "precision": "int8", "d_model": "384"}
    assert value(found, "fillmask_model_info", **about) == 1


def test_unknown_throughput_is_absent() -> None:
    # Before the first batch, a throughput of zero would be wrong.
    load = QueueLoad({"interactive": 0}, {"interactive": 1}, None, 1)
    found = scraped(ProcessStatistics(), state(load=load))
    assert not [name for name, _ in found if name == "fillmask_tokens_per_second"]


@pytest.mark.parametrize(
    ("reason", "failure", "ready"),
    [(None, None, 1), ("It stops.", None, 0), (None, "It is stuck.", 0)],
)
def test_ready(reason: str | None, failure: str | None, ready: int) -> None:
    # The service is not ready after a failed probe of one of its models.
    found = scraped(ProcessStatistics(), state(failure), reason=reason)
    assert found["fillmask_ready", frozenset()] == ready


def test_process() -> None:
    # The client libraries of Prometheus define the names of these metrics.
    names = {name for name, _ in scraped(ProcessStatistics())}
    assert {
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
        "process_start_time_seconds",
        "python_gc_collections_total",
        "python_info",
    } <= names


def test_openmetrics() -> None:
    # A scraper that accepts OpenMetrics gets this stricter format.
    statistics = ProcessStatistics()
    statistics.requests.for_route("GET", "/a").record(200, 1)
    statistics.for_model("m").record_batch(1, 1, [1], 1)
    metrics = Metrics(statistics, lambda: [state()], lambda: None)
    content, content_type = metrics.render(OPENMETRICS)
    assert content_type.startswith("application/openmetrics-text")
    parsed = text_string_to_metric_families(content.decode())  # type: ignore[no-untyped-call] # it has no annotations
    families = {family.name for family in parsed}
    assert {"fillmask_requests", "fillmask_queue_seconds", "fillmask_model_info"} <= families
