"""ASGI middleware that counts and logs requests, and their bodies where that is set."""

import logging
import time
from collections.abc import Awaitable
from typing import Literal

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.observability.request_context import MODEL, route_of
from service.observability.statistics import RequestStatistics

LoggedRequests = Literal["off", "errors", "all"]

# what nginx logs for it, and what the endpoints of FastAPI answer nobody
CLIENT_CLOSED_REQUEST = 499


# the lowest status that is logged
_LOGGED_FROM: dict[LoggedRequests, int] = {"off": 1000, "errors": 500, "all": 0}
# refusals of a service that goes on
_EXPECTED_ERRORS = frozenset({503, 504})

_log = logging.getLogger(__name__)


class AccessLogMiddleware:
    """Counts requests by method, route and status, and the seconds they took.

    The log has neither path nor query, which are the caller's words, nor any header.

    Args:
        app: the application.
        statistics: told of each request.
        logged: which requests are logged too.
    """

    def __init__(
        self, app: ASGIApp, statistics: RequestStatistics, logged: LoggedRequests = "off"
    ) -> None:
        self._app = app
        self._statistics = statistics
        self._logged_from = _LOGGED_FROM[logged]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun_s = time.perf_counter()
        status = CLIENT_CLOSED_REQUEST
        start: Message = {}

        def send_and_record(message: Message) -> Awaitable[None]:
            nonlocal status, start
            if message["type"] == "http.response.start":
                status = message["status"]
                start = message
            return send(message)

        try:
            await self._app(scope, receive, send_and_record)
        finally:
            seconds = time.perf_counter() - begun_s
            self._statistics.for_route(scope["method"], route_of(scope)).record(status, seconds)
            if status >= self._logged_from:
                _log.log(_level(status), "request", extra=_fields(scope, start, status, seconds))


def _level(status: int) -> int:
    if status < 500:
        return logging.INFO
    return logging.WARNING if status in _EXPECTED_ERRORS else logging.ERROR


def _fields(scope: Scope, start: Message, status: int, seconds: float) -> dict[str, object]:
    lengths = (value for name, value in start.get("headers", ()) if name == b"content-length")
    fields: dict[str, object] = {
        "method": scope["method"],
        "route": route_of(scope),
        "status": status,
        "duration_ms": round(seconds * 1000, 3),
        "answer_bytes": int(next(lengths, b"0")),
    }
    if (model := scope.get(MODEL)) is not None:
        fields["model"] = model
    return fields


MAX_LOGGED_CHARS = 10_000


class BodyLogMiddleware:
    """Logs the body of each request, up to 10,000 characters.

    Args:
        app: the application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection, whose body comes in one message."""

        async def receive_and_log() -> Message:
            message = await receive()
            if body := message.get("body"):
                text = body.decode(errors="replace")[:MAX_LOGGED_CHARS]
                _log.debug("a body", extra={"body": text, "body_bytes": len(body)})
            return message

        await self._app(scope, receive_and_log, send)
