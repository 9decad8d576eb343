"""ASGI middleware that adds a request id to responses and catches unhandled exceptions."""

import asyncio
import logging
import random
import re
from collections.abc import Awaitable, Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask.errors import safe_traceback
from fillmask.http.send_json import send_error_message
from fillmask.observability.request_context import CURRENT_SCOPE, REQUEST_ID

_log = logging.getLogger(__name__)

_HEADER = b"x-request-id"
_VALID_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class RequestIdMiddleware:
    """Middleware that adds a request id to each response.

    The id is the client's X-Request-ID header. Without a valid header, the id is a random number.
    The log of an unhandled exception has the id, the type of the exception and its traceback. The
    response has only the id. The log and the response omit the exception message, which may quote
    text of a client.

    Args:
        app: next ASGI application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request and its unhandled exceptions."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = scope[REQUEST_ID] = request_id_of(scope["headers"])
        CURRENT_SCOPE.set(scope)  # each request runs in its own context
        started = False

        def send_with_id(message: Message) -> Awaitable[None]:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message.get("headers", ()), (_HEADER, request_id)]
            return send(message)

        async def fail(status: int, message: str) -> None:
            if not started:  # the server closes the connection of a started response
                await send_error_message(send_with_id, status, message)

        try:
            await self._app(scope, receive, send_with_id)
        except asyncio.CancelledError:  # the server cancels requests after the grace period
            await fail(
                503, "The service cancels the request, because it is shutting down; try again."
            )
        except Exception as error:  # noqa: BLE001 - the last handler of every request
            text = request_id.decode()
            _log.error("request %s has failed:\n%s", text, safe_traceback(error))
            await fail(
                500, f"The service has an internal error; report it with the request id {text}."
            )


def request_id_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the valid request id of the client or a new id."""
    for name, value in headers:
        if name == _HEADER and _VALID_ID.fullmatch(value):
            return bytes(value)
    # The id is not a secret, so os.urandom is not needed. The system call of
    # os.urandom releases the interpreter lock.
    return b"%032x" % random.getrandbits(128)
