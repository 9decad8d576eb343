"""Access log, metrics of requests, and the log of bodies."""

import logging
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask.http.middleware.access_log import (
    CLIENT_CLOSED_REQUEST,
    MAX_LOGGED_CHARS,
    AccessLogMiddleware,
    BodyLogMiddleware,
    LoggedRequests,
)
from fillmask.observability.logs import FIELDS
from fillmask.observability.metrics import Metrics
from fillmask.observability.request_context import MODEL, OTHER_ROUTE
from tests.service.scrape import rendered, value


async def call(
    app: ASGIApp, around: Callable[[ASGIApp], ASGIApp] | None = None, **scope: Any
) -> Metrics:
    """Send one request through the middleware and return the metrics."""
    metrics = Metrics()
    around = around or partial(AccessLogMiddleware, metrics=metrics)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_message: Message) -> None:
        pass

    whole = {"type": "http", "method": "POST", "path": "/a path", "headers": []} | scope
    await around(app)(whole, receive, send)
    return metrics


def counted(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Return the counts of requests by method, route and status."""
    return {
        tuple(dict(labels)[label] for label in ("method", "route", "status")): count
        for (name, labels), count in rendered(metrics).items()
        if name == "fillmask_requests_total"
    }


async def teapot(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Application that responds with status 418."""
    await send({"type": "http.response.start", "status": 418, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def silent(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Application that sends no response, because its client has disconnected."""


async def failing(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise RuntimeError


async def routed(scope: Scope, receive: Receive, send: Send) -> None:
    """Application that sets the route, as FastAPI does."""
    scope["route"] = SimpleNamespace(path_format="/models/{name}")
    await teapot(scope, receive, send)


async def test_request_is_counted_by_route_and_status() -> None:
    # The route is the path's template, not the requested path.
    metrics = await call(routed)
    assert counted(metrics) == {("POST", "/models/{name}", "418"): 1}
    found, route = rendered(metrics), {"method": "POST", "route": "/models/{name}"}
    assert value(found, "fillmask_request_seconds_count", **route) == 1
    assert 0 < value(found, "fillmask_request_seconds_sum", **route) < 10


async def test_paths_without_a_route_count_as_one() -> None:
    assert counted(await call(teapot, path="/made/up")) == {("POST", OTHER_ROUTE, "418"): 1}


async def test_disconnected_client_has_a_status_of_its_own() -> None:
    assert counted(await call(silent)) == {("POST", OTHER_ROUTE, str(CLIENT_CLOSED_REQUEST)): 1}


async def test_exception_is_raised_and_counted() -> None:
    metrics = Metrics()

    async def nothing(*_: object) -> Any:
        return None

    with pytest.raises(RuntimeError):
        await AccessLogMiddleware(failing, metrics)(
            {"type": "http", "method": "GET"}, nothing, nothing
        )
    assert counted(metrics) == {("GET", OTHER_ROUTE, str(CLIENT_CLOSED_REQUEST)): 1}


async def test_responses_have_the_time_in_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    # Error responses have no such header.
    sent: list[Message] = []

    async def answer(scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [(b"content-length", b"0")]
        await send({"type": "http.response.start", "status": scope["answer"], "headers": headers})

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def record(message: Message) -> None:
        sent.append(message)

    for status in (200, 422):
        clock = SimpleNamespace(perf_counter=partial(next, iter([1.0, 1.0125, 1.5])))
        monkeypatch.setattr("fillmask.http.middleware.access_log.time", clock)
        scope = {"type": "http", "method": "POST", "path": "/", "answer": status}
        await AccessLogMiddleware(answer, Metrics())(scope, receive, record)
    headers = [dict(message["headers"]) for message in sent]
    assert headers == [
        {b"content-length": b"0", b"server-timing": b"app;dur=12.50"},
        {b"content-length": b"0"},
    ]


async def test_other_connections_pass() -> None:
    # The middleware does not count the lifespan of the application as a request.
    assert counted(await call(silent, type="lifespan")) == {}


@pytest.mark.parametrize(
    ("logged", "levels"),
    [
        ("off", []),
        ("errors", ["ERROR", "WARNING"]),
        ("all", ["INFO", "INFO", "ERROR", "WARNING"]),
    ],
)
async def test_setting_decides_which_requests_are_logged(
    logged: LoggedRequests, levels: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    # The level is warning for status 503 and error for other 5xx statuses.
    async def answer(scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": scope["answer"], "headers": []})

    app = partial(AccessLogMiddleware, metrics=Metrics(), logged=logged)
    with caplog.at_level(logging.DEBUG, "fillmask.http.middleware.access_log"):
        for status in (200, 422, 500, 503):
            await call(answer, app, answer=status)
    assert [record.levelname for record in caplog.records] == levels


async def test_fields_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    # The log contains no path, no header and no method that a client has made up.
    async def answer(scope: Scope, _receive: Receive, send: Send) -> None:
        scope[MODEL] = "a model"
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"12")]
        await send({"type": "http.response.start", "status": 201, "headers": headers})

    app = partial(AccessLogMiddleware, metrics=Metrics(), logged="all")
    with caplog.at_level(logging.INFO, "fillmask.http.middleware.access_log"):
        await call(answer, app)
        await call(silent, app, method="A TEXT")
    answered, left = (vars(record) for record in caplog.records)
    named = {name: answered.get(name) for name in FIELDS}
    assert answered["duration_ms"] > 0
    del named["duration_ms"]
    assert named == {
        "method": "POST",
        "route": OTHER_ROUTE,
        "status": 201,
        "answer_bytes": 12,
        "model": "a model",
        "body": None,
        "body_bytes": None,
    }
    assert (left["status"], left["answer_bytes"]) == (CLIENT_CLOSED_REQUEST, 0)
    assert "model" not in left
    assert left["method"] == "other"
    assert "/a path" not in str(answered) + str(left)


async def send_body(body: bytes) -> bytes:
    """Send one body through the middleware and return the body that the application receives."""
    received = []

    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        received.append((await receive())["body"])
        assert (await receive())["type"] == "http.disconnect"

    sent: list[Message] = [{"type": "http.request", "body": body}, {"type": "http.disconnect"}]
    messages = iter(sent)

    async def receive() -> Message:
        return next(messages)

    async def send(_message: Message) -> None:
        pass

    await BodyLogMiddleware(app)({"type": "http"}, receive, send)
    return bytes(received[0])


async def test_body_is_logged_and_passed_on(caplog: pytest.LogCaptureFixture) -> None:
    # At the level debug, the log has the body and marks bytes that are not UTF-8.
    with caplog.at_level(logging.DEBUG):
        assert await send_body(b"caf\xc3\xa9 \xff") == b"caf\xc3\xa9 \xff"
    [record] = [
        record for record in caplog.records if record.name == "fillmask.http.middleware.access_log"
    ]
    assert vars(record)["body"] == "café �"
    assert vars(record)["body_bytes"] == 7
    assert record.levelno == logging.DEBUG


async def test_long_body_is_cut_in_the_log_only(caplog: pytest.LogCaptureFixture) -> None:
    # The log has the full length of the body.
    with caplog.at_level(logging.DEBUG):
        assert await send_body(b"x" * 50_000) == b"x" * 50_000
    [record] = [
        record for record in caplog.records if record.name == "fillmask.http.middleware.access_log"
    ]
    assert vars(record)["body"] == "x" * MAX_LOGGED_CHARS
    assert vars(record)["body_bytes"] == 50_000
