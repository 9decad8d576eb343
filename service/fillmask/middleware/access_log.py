"""ASGI middleware that counts, times and logs requests."""

import logging
import time
from collections.abc import Awaitable
from typing import Literal

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask.errors import safe_traceback
from fillmask.observability.metrics import Metrics, known_method
from fillmask.observability.request_context import (
    MODEL,
    NOTICES,
    TIMES,
    RequestTimes,
    notices_header,
    route_of,
)

LoggedRequests = Literal["off", "errors", "all"]

# nginx's status for a client that disconnected before its response
CLIENT_CLOSED_REQUEST = 499

# lowest status of the requests to log, by setting
_LOGGED_FROM: dict[LoggedRequests, int] = {"off": 1000, "errors": 500, "all": 0}
# temporary errors of a service that keeps running
_EXPECTED_ERRORS = frozenset({503, 504})

_log = logging.getLogger(__name__)


class AccessLogMiddleware:
    """Middleware that counts, times and logs requests.

    The log omits paths, queries and headers, which may contain text of clients. The header
    Server-Timing of a response without an error has the milliseconds from the request's head to the
    response, and of these the milliseconds of each step (W3C Server Timing). X-Warnings counts what
    the model did not read as written.

    Args:
        logged: requests to log, where "errors" means a status of 500 or above.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, logged: LoggedRequests = "off") -> None:
        self._app = app
        self._metrics = metrics
        self._logged_from = _LOGGED_FROM[logged]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun_s = time.perf_counter()
        times = scope[TIMES] = RequestTimes()
        status = CLIENT_CLOSED_REQUEST
        start: Message = {}

        def send_and_record(message: Message) -> Awaitable[None]:
            nonlocal status, start
            if message["type"] == "http.response.start":
                status = message["status"]
                start = message
                if status < 400:
                    timing = times.header(time.perf_counter() - begun_s)
                    headers = [*message.get("headers", ()), (b"server-timing", timing)]
                    if NOTICES in scope:
                        headers.append((b"x-warnings", notices_header(scope[NOTICES])))
                    message["headers"] = headers
            return send(message)

        try:
            await self._app(scope, receive, send_and_record)
        except Exception as error:
            # RequestIdMiddleware answers and logs all exceptions but those of the other middleware
            _log.error("a middleware has failed:\n%s", safe_traceback(error))
            raise
        finally:
            seconds = time.perf_counter() - begun_s
            self._metrics.record_request(scope["method"], route_of(scope), status, seconds)
            if status >= self._logged_from:
                _log.log(_level(status), "request", extra=_fields(scope, start, status, seconds))


def _level(status: int) -> int:
    if status < 500:
        return logging.INFO
    return logging.WARNING if status in _EXPECTED_ERRORS else logging.ERROR


def _fields(scope: Scope, start: Message, status: int, seconds: float) -> dict[str, object]:
    lengths = (value for name, value in start.get("headers", ()) if name == b"content-length")
    fields: dict[str, object] = {
        "method": known_method(scope["method"]),
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
    """Middleware that logs the first MAX_LOGGED_CHARS characters of each request body.

    Args:
        app: next ASGI application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begin, size_bytes = b"", 0

        async def receive_and_log() -> Message:
            nonlocal begin, size_bytes
            message = await receive()
            if body := message.get("body"):
                begin += body[: 4 * MAX_LOGGED_CHARS - len(begin)]  # UTF-8 has at most 4 bytes
                size_bytes += len(body)
            if begin and not message.get("more_body"):
                text, begin = begin.decode(errors="replace")[:MAX_LOGGED_CHARS], b""
                _log.debug("request body", extra={"body": text, "body_bytes": size_bytes})
            return message

        await self._app(scope, receive_and_log, send)
