"""Metrics of requests and batches in the text format of Prometheus."""

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from fillmask.observability.metrics import Metrics
from tests.service.scrape import rendered, value

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


def test_requests() -> None:
    # The service counts requests by status and measures durations by route.
    metrics = Metrics()
    metrics.record_request("POST", "/models/{name}", 200, 0.004)
    metrics.record_request("POST", "/models/{name}", 200, 0.005)
    metrics.record_request("POST", "/models/{name}", 504, 30.0)
    for method in ("BREW", "x" * 1000):  # clients cannot create time series with invented methods
        metrics.record_request(method, "/", 405, 0)
    found = rendered(metrics)
    assert value(found, "fillmask_requests_total", method="other", route="/", status="405") == 2
    assert [name for name, _ in found].count("fillmask_requests_total") == 3
    assert len(metrics._by_request) == 3
    route = {"method": "POST", "route": "/models/{name}"}
    assert value(found, "fillmask_requests_total", **route, status="200") == 2
    assert value(found, "fillmask_requests_total", **route, status="504") == 1
    # a bucket includes values equal to its upper bound
    assert value(found, "fillmask_request_seconds_bucket", **route, le="0.0025") == 0
    assert value(found, "fillmask_request_seconds_bucket", **route, le="0.005") == 2
    assert value(found, "fillmask_request_seconds_bucket", **route, le="+Inf") == 3
    assert value(found, "fillmask_request_seconds_count", **route) == 3
    assert value(found, "fillmask_request_seconds_sum", **route) == pytest.approx(30.009)


def test_rejections_have_a_reason() -> None:
    # The reasons are the queue of a model and timeouts.
    metrics = Metrics()
    name = "fillmask_rejected_total"
    model = metrics.for_model("m")
    # Prometheus sees an increase only from an existing value
    assert {
        labels: count for (each, labels), count in rendered(metrics).items() if each == name
    } == {
        frozenset({("reason", reason), ("model", owner)}): 0
        for reason, owner in (
            ("deadline", ""),
            ("slow_client", ""),
            ("queue_full", "m"),
            ("wait_too_long", "m"),
        )
    }
    model.record_rejection("queue_full")
    metrics.record_request("POST", "/a", 408, 1)
    metrics.record_request("GET", "/a", 504, 1)
    metrics.record_request("GET", "/b", 504, 1)
    found = rendered(metrics)
    assert value(found, name, reason="queue_full", model="m") == 1
    assert value(found, name, reason="slow_client", model="") == 1
    assert value(found, name, reason="deadline", model="") == 2


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_both_formats(accept: str) -> None:
    # A scraper that accepts OpenMetrics gets this stricter format. No series has its creation time.
    # The client libraries of Prometheus define the names of the metrics of a process.
    metrics = Metrics()
    metrics.record_request("GET", "/a", 200, 1)
    metrics.for_model("m").record_batch(1, 1, [1], 1)
    content, content_type = metrics.render(accept)
    assert content_type.startswith("application/openmetrics-text" if accept else "text/plain")
    assert b"_created" not in content
    for name in (b"process_resident_memory_bytes", b"python_gc_collections_total", b"python_info"):
        assert name in content
    if accept:
        parsed = text_string_to_metric_families(content.decode())  # type: ignore[no-untyped-call] # it has no annotations
        families = {family.name for family in parsed}
        assert {"fillmask_requests", "fillmask_queue_seconds", "fillmask_connections"} <= families
