"""ASGI middleware for what all responses have in common: a request id, errors, and HEAD.

The body of an error is {"error": MESSAGE}. Every GET route takes HEAD (RFC 9110, 9.3.2).
"""

import asyncio
import logging
import random
import re
from collections.abc import Awaitable, Iterable, Mapping

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask.errors import FillMaskError, OverloadedError, UnauthorizedError, safe_traceback
from fillmask.middleware.transfer import ClientDisconnectedError
from fillmask.observability.request_context import CURRENT_SCOPE, REQUEST_ID

_log = logging.getLogger(__name__)

_HEADER = b"x-request-id"
_VALID_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


def error_response(
    status: int, message: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers)


def response_to(error: FillMaskError) -> JSONResponse:
    headers = {}
    if isinstance(error, OverloadedError):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, UnauthorizedError):
        headers["WWW-Authenticate"] = "Bearer"
        headers["Connection"] = "close"  # strangers pay for each request with a new connection
    return error_response(error.status, error.text, headers)


class RequestIdMiddleware:
    """Middleware that adds a request id to each response and answers every exception.

    The id is the client's X-Request-ID header. Without a valid header, the id is a random number.
    A FillMaskError is its own response. Of any other exception, the log has the id, the type and
    the traceback, and the response has only the id. Its message may quote text of a client.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = scope[REQUEST_ID] = request_id_of(scope["headers"])
        CURRENT_SCOPE.set(scope)  # each request runs in its own context
        started = False

        def send_with_id(message: Message) -> Awaitable[None]:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message.get("headers", ()), (_HEADER, request_id)]
            return send(message)

        async def fail(response: JSONResponse) -> None:
            if not started:  # the server closes the connection of a started response
                await response(scope, receive, send_with_id)

        try:
            await self._app(scope, receive, send_with_id)
        except FillMaskError as error:
            await fail(response_to(error))
        except (ClientDisconnectedError, ClientDisconnect):
            return
        except asyncio.CancelledError:  # the server cancels requests after the grace period
            message = "The service cancels the request, because it is shutting down; try again."
            await fail(error_response(503, message))
        except Exception as error:  # noqa: BLE001 - the last handler of every request
            text = request_id.decode()
            _log.error("request %s has failed:\n%s", text, safe_traceback(error))
            message = f"The service has an internal error; report it with the request id {text}."
            await fail(error_response(500, message))


def request_id_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    for name, value in headers:
        if name == _HEADER and _VALID_ID.fullmatch(value):
            return bytes(value)
    # not os.urandom, because its system call releases the interpreter lock, and this is no secret
    return b"%032x" % random.getrandbits(128)


class HeadMiddleware:
    """Middleware that handles HEAD requests as GET requests and omits the response bodies."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        # a copy, because the server also reads the method and sends no body for HEAD
        as_get = {**scope, "method": "GET"}
        try:
            await self._app(as_get, receive, send_without_body)
        finally:
            scope.update({**as_get, "method": "HEAD"})  # keeps the values that routing has added
