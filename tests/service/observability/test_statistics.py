"""Counters and histograms of a process."""

import math
import random
import threading

import pytest

from fillmask.observability.statistics import (
    BatchStatistics,
    Histogram,
    ProcessStatistics,
    RequestStatistics,
)


def test_values_are_counted_by_bucket() -> None:
    # A bucket includes values equal to its upper bound. The last bucket has no upper bound.
    histogram = Histogram((1, 2, 5))
    for value in (0.5, 1, 1.5, 2, 5, 5.1, 100):
        histogram.record(value)
    assert histogram.cumulative == [(1, 2), (2, 4), (5, 5), (math.inf, 7)]
    assert histogram.total == pytest.approx(115.1)


def test_empty_histogram_has_all_buckets() -> None:
    histogram = Histogram((1, 2))
    assert histogram.cumulative == [(1, 0), (2, 0), (math.inf, 0)]
    assert histogram.total == 0


def test_cumulative_counts() -> None:
    # The counts of random values equal those of a direct comparison with each bound.
    values = [random.expovariate(1) for _ in range(1000)]
    histogram = Histogram((0.1, 0.5, 1, 3))
    for value in values:
        histogram.record(value)
    for bound, count in histogram.cumulative:
        assert count == sum(value <= bound for value in values)


def test_requests_are_counted_by_route_and_status() -> None:
    # Each method of a route has separate counts.
    requests = RequestStatistics()
    requests.for_route("POST", "/fill-mask").record(200, 0.1)
    requests.for_route("POST", "/fill-mask").record(200, 0.2)
    requests.for_route("POST", "/fill-mask").record(422, 0.3)
    requests.for_route("GET", "/info").record(200, 0.4)
    routes = dict(requests.routes)
    assert routes["POST", "/fill-mask"].statuses == {200: 2, 422: 1}
    assert routes["POST", "/fill-mask"].seconds.total == 0.1 + 0.2 + 0.3
    assert routes["GET", "/info"].statuses == {200: 1}


def test_unknown_methods_share_one_entry() -> None:
    # Clients cannot create time series with invented methods.
    requests = RequestStatistics()
    for method in ("BREW", "PROPFIND", "x" * 1000):
        requests.for_route(method, "/").record(405, 0)
    assert [key for key, _ in requests.routes] == [("other", "/")]
    assert dict(requests.routes)["other", "/"].statuses == {405: 3}


def test_request_rejected_on_arrival_has_no_duration() -> None:
    # The histogram of latencies excludes the rejected request.
    route = RequestStatistics().for_route("POST", "/fill-mask")
    route.record_rejected(429)
    route.record(200, 0.5)
    assert route.statuses == {429: 1, 200: 1}
    assert route.seconds.cumulative[-1][1] == 1


def test_batch_is_counted() -> None:
    # Each pass of a batch has a separate queueing time.
    statistics = BatchStatistics()
    statistics.record_batch(tokens=30, slots=48, queue_s=[0.001, 0.002, 0.003], compute_s=0.01)
    statistics.record_batch(tokens=5, slots=16, queue_s=[0.5], compute_s=0.02)
    assert statistics.queue_seconds.cumulative[-1][1] == 4
    assert statistics.queue_seconds.total == 0.001 + 0.002 + 0.003 + 0.5
    assert statistics.compute_seconds.cumulative[-1][1] == 2
    assert statistics.tokens.total == 35
    assert statistics.sequences.total == 4
    assert statistics.slots == 64


def test_threads_lose_no_count() -> None:
    # During a reload, the batchers of the old and the new model share the statistics.
    statistics = BatchStatistics()

    def tell() -> None:
        for _ in range(2000):
            statistics.record_batch(1, 16, [0.1], 0.1)
            statistics.record_failure()
            statistics.record_rejection("queue_full")

    threads = [threading.Thread(target=tell) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statistics.slots == 4 * 2000 * 16
    assert statistics.failures == statistics.rejections["queue_full"] == 8000
    assert statistics.queue_seconds.cumulative[-1][1] == 8000


def test_counts_survive_a_reload() -> None:
    # Counters never decrease while the process runs.
    statistics = ProcessStatistics()
    statistics.for_model("a").record_failure()
    statistics.for_model("a").record_failure()
    statistics.for_model("b").record_failure()
    assert [(name, one.failures) for name, one in statistics.batches] == [("a", 2), ("b", 1)]
