"""Access log, and metrics of requests."""

import contextlib
import logging
from functools import partial
from types import SimpleNamespace

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from fillmask.middleware.access_log import (
    CLIENT_CLOSED_REQUEST,
    MAX_LOGGED_CHARS,
    AccessLogMiddleware,
    BodyLogMiddleware,
    LoggedRequests,
)
from fillmask.observability.logs import FIELDS
from fillmask.observability.metrics import Metrics
from fillmask.observability.request_context import MODEL, OTHER_ROUTE
from tests.service.middleware.asgi import call, respond
from tests.service.scrape import rendered, value


async def teapot(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Application that responds with status 418."""
    await respond(send, 418, b"")


async def silent(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Application that sends no response, because its client has disconnected."""


async def failing(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise RuntimeError


async def routed(scope: Scope, receive: Receive, send: Send) -> None:
    """Application that sets the route, as FastAPI does."""
    scope["route"] = SimpleNamespace(path_format="/models/{name}")
    await teapot(scope, receive, send)


@pytest.mark.parametrize(
    ("app", "route", "status"),
    [
        (routed, "/models/{name}", 418),
        (teapot, OTHER_ROUTE, 418),
        (silent, OTHER_ROUTE, CLIENT_CLOSED_REQUEST),
        (failing, OTHER_ROUTE, CLIENT_CLOSED_REQUEST),
    ],
)
async def test_request_is_counted_by_route_and_status(
    app: ASGIApp, route: str, status: int
) -> None:
    # The route is the path's template, not the requested path.
    metrics = Metrics()
    with pytest.raises(RuntimeError) if app is failing else contextlib.nullcontext():
        await call(AccessLogMiddleware(app, metrics))
    found, labels = rendered(metrics), {"method": "POST", "route": route}
    assert value(found, "fillmask_requests_total", **labels, status=str(status)) == 1
    assert [name for name, _ in found].count("fillmask_requests_total") == 1
    assert value(found, "fillmask_request_seconds_count", **labels) == 1
    assert 0 < value(found, "fillmask_request_seconds_sum", **labels) < 10


async def chosen(scope: Scope, _receive: Receive, send: Send) -> None:
    """Application that responds with the status in the scope."""
    scope[MODEL] = "a model"
    await respond(send, scope["answer"], b"", [(b"content-length", b"12")])


async def test_responses_have_the_time_in_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    # Error responses have no such header.
    headers = []
    for status in (200, 422):
        clock = SimpleNamespace(perf_counter=partial(next, iter([1.0, 1.0125, 1.5])))
        monkeypatch.setattr("fillmask.middleware.access_log.time", clock)
        start, _ = await call(AccessLogMiddleware(chosen, Metrics()), answer=status)
        headers.append(dict(start["headers"]))
    assert headers == [
        {b"content-length": b"12", b"server-timing": b"app;dur=12.50"},
        {b"content-length": b"12"},
    ]


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
    with caplog.at_level(logging.DEBUG, "fillmask.middleware.access_log"):
        for status in (200, 422, 500, 503):
            await call(AccessLogMiddleware(chosen, Metrics(), logged=logged), answer=status)
    assert [record.levelname for record in caplog.records] == levels


async def test_fields_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    # The log contains no path, no header and no method that a client has made up.
    with caplog.at_level(logging.INFO, "fillmask.middleware.access_log"):
        await call(AccessLogMiddleware(chosen, Metrics(), logged="all"), answer=201)
        await call(AccessLogMiddleware(silent, Metrics(), logged="all"), method="A TEXT")
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


@pytest.mark.parametrize(
    ("chunks", "logged"),
    [
        ([b"caf\xc3", b"\xa9 \xff"], "café �"),  # marks bytes that are not UTF-8
        ([b"x" * 30_000, b"y" * 20_000], "x" * MAX_LOGGED_CHARS),
        (["é".encode() * 9_999, b"xyz"], "é" * 9_999 + "x"),
    ],
)
async def test_body_is_logged_once_and_passed_on(
    chunks: list[bytes], logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    # A long body is cut in the log only, which has its full length.
    received = b""

    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        nonlocal received
        while (message := await receive())["type"] == "http.request":
            received += message["body"]

    with caplog.at_level(logging.DEBUG):
        await call(BodyLogMiddleware(app), list(chunks))
    assert received == b"".join(chunks)
    [record] = caplog.records
    assert (record.name, record.levelno) == ("fillmask.middleware.access_log", logging.DEBUG)
    assert vars(record)["body"] == logged
    assert vars(record)["body_bytes"] == len(received)
