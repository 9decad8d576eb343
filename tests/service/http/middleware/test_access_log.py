"""Bodies in the log, where somebody has asked for them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.middleware.access_log import (
    CLIENT_CLOSED_REQUEST,
    MAX_LOGGED_CHARS,
    AccessLogMiddleware,
    BodyLogMiddleware,
    LoggedRequests,
)
from service.observability.logs import FIELDS
from service.observability.request_context import MODEL, OTHER_ROUTE
from service.observability.statistics import RequestStatistics


async def run(call: Awaitable[None]) -> None:
    """An application's call is awaitable, which is less than a coroutine."""
    await call


def call(
    app: ASGIApp, around: Callable[[ASGIApp], ASGIApp] | None = None, **scope: Any
) -> RequestStatistics:
    """Send one request through the middleware."""
    statistics = RequestStatistics()
    around = around or partial(AccessLogMiddleware, statistics=statistics)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_message: Message) -> None:
        pass

    whole = {"type": "http", "method": "POST", "path": "/a path", "headers": []} | scope
    asyncio.run(run(around(app)(whole, receive, send)))
    return statistics


def counted(statistics: RequestStatistics) -> dict[tuple[str, str], dict[int, int]]:
    """Statuses by method and route."""
    return {route: one.statuses for route, one in statistics.routes}


async def teapot(_scope: Scope, _receive: Receive, send: Send) -> None:
    """An application that answers."""
    await send({"type": "http.response.start", "status": 418, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def silent(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """An application whose caller has left."""


async def failing(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """An application with a bug."""
    raise RuntimeError


async def routed(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that notes the route, as FastAPI does."""
    scope["route"] = SimpleNamespace(path_format="/models/{name}")
    await teapot(scope, receive, send)


def test_a_request_is_counted_by_route_and_status() -> None:
    """The route is the template that was noted on the way."""
    statistics = call(routed)
    assert counted(statistics) == {("POST", "/models/{name}"): {418: 1}}
    [(_, one)] = statistics.routes
    assert one.seconds.cumulative[-1][1] == 1
    assert 0 < one.seconds.total < 10


def test_what_has_no_route_is_one() -> None:
    """Whatever the path is."""
    assert counted(call(teapot, path="/made/up")) == {("POST", OTHER_ROUTE): {418: 1}}


def test_a_caller_who_has_left() -> None:
    """Got no answer, and has a status of its own."""
    assert counted(call(silent)) == {("POST", OTHER_ROUTE): {CLIENT_CLOSED_REQUEST: 1}}


def test_an_exception_passes_and_is_counted() -> None:
    """It is somebody else's to answer."""
    statistics = RequestStatistics()

    async def nothing(*_: object) -> Any:
        return None

    with pytest.raises(RuntimeError):
        asyncio.run(
            AccessLogMiddleware(failing, statistics)(
                {"type": "http", "method": "GET"}, nothing, nothing
            )
        )
    assert len(statistics.routes) == 1


def test_other_connections_pass() -> None:
    """The lifespan is no request."""
    assert counted(call(silent, type="lifespan")) == {}


@pytest.mark.parametrize(
    ("logged", "levels"),
    [
        ("off", []),
        ("errors", ["ERROR", "WARNING"]),
        ("all", ["INFO", "INFO", "ERROR", "WARNING"]),
    ],
)
def test_which_requests_are_logged(
    logged: LoggedRequests, levels: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Errors are those of the service; one that is temporary is a warning."""

    async def answer(scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": scope["answer"], "headers": []})

    app = partial(AccessLogMiddleware, statistics=RequestStatistics(), logged=logged)
    with caplog.at_level(logging.DEBUG, "service.http.middleware.access_log"):
        for status in (200, 422, 500, 503):
            call(answer, app, answer=status)
    assert [record.levelname for record in caplog.records] == levels


def test_fields_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """What was asked of which model and how it went; neither the path nor a header."""

    async def answer(scope: Scope, _receive: Receive, send: Send) -> None:
        scope[MODEL] = "a model"
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"12")]
        await send({"type": "http.response.start", "status": 201, "headers": headers})

    app = partial(AccessLogMiddleware, statistics=RequestStatistics(), logged="all")
    with caplog.at_level(logging.INFO, "service.http.middleware.access_log"):
        call(answer, app)
        call(silent, app)
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
    assert "/a path" not in str(answered) + str(left)


def heard(body: bytes) -> bytes:
    """Send one body through the middleware; what the application gets of it."""
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

    asyncio.run(BodyLogMiddleware(app)({"type": "http"}, receive, send))
    return bytes(received[0])


def test_a_body_is_logged_and_passed_on(caplog: pytest.LogCaptureFixture) -> None:
    """At the level debug, with its size; bytes that are no text are marked."""
    with caplog.at_level(logging.DEBUG):
        assert heard(b"caf\xc3\xa9 \xff") == b"caf\xc3\xa9 \xff"
    [record] = [
        record for record in caplog.records if record.name == "service.http.middleware.access_log"
    ]
    assert vars(record)["body"] == "café �"
    assert vars(record)["body_bytes"] == 7
    assert record.levelno == logging.DEBUG


def test_a_long_body_is_cut_in_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    """The log says how long it was."""
    with caplog.at_level(logging.DEBUG):
        assert heard(b"x" * 50_000) == b"x" * 50_000
    [record] = [
        record for record in caplog.records if record.name == "service.http.middleware.access_log"
    ]
    assert vars(record)["body"] == "x" * MAX_LOGGED_CHARS
    assert vars(record)["body_bytes"] == 50_000
