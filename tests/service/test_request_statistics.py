"""Requests by method, route and status."""

from service.request_statistics import RequestStatistics


def test_requests_are_counted_by_route_and_status() -> None:
    """Each method of a route for itself."""
    requests = RequestStatistics()
    requests.of("POST", "/fill-mask").note(200, 0.1)
    requests.of("POST", "/fill-mask").note(200, 0.2)
    requests.of("POST", "/fill-mask").note(422, 0.3)
    requests.of("GET", "/info").note(200, 0.4)
    routes = dict(requests.routes)
    assert routes["POST", "/fill-mask"].statuses == {200: 2, 422: 1}
    assert routes["POST", "/fill-mask"].seconds.total == 0.1 + 0.2 + 0.3
    assert routes["GET", "/info"].statuses == {200: 1}


def test_strange_methods_are_one() -> None:
    """Nobody can make up series by making up methods."""
    requests = RequestStatistics()
    for method in ("BREW", "PROPFIND", "x" * 1000):
        requests.of(method, "/").note(405, 0)
    assert [key for key, _ in requests.routes] == [("other", "/")]
    assert dict(requests.routes)["other", "/"].statuses == {405: 3}


def test_what_was_refused_at_once_took_no_time() -> None:
    """It is counted, and does not flatter the latency."""
    route = RequestStatistics().of("POST", "/fill-mask")
    route.note_refused(429)
    route.note(200, 0.5)
    assert route.statuses == {429: 1, 200: 1}
    assert route.seconds.cumulative[-1][1] == 1
