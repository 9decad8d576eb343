"""ASGI middleware: every answer carries a request id, and no failure goes without an answer."""

import asyncio
import logging
import random
import re
from collections.abc import Awaitable, Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import safe_traceback
from service.http.responses import send_error_message
from service.observability.request_context import CURRENT_SCOPE, REQUEST_ID

_log = logging.getLogger(__name__)

_HEADER = b"x-request-id"
_VALID_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class RequestIdMiddleware:
    """Takes the caller's X-Request-ID if it is sane, or makes one.

    An exception that nothing else has handled is logged under the id, as its type and place; the
    answer has the id and no more. Neither has the exception's text, which may quote the user's.

    Args:
        app: the application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = scope[REQUEST_ID] = request_id_of(scope["headers"])
        CURRENT_SCOPE.set(scope)  # each request has a context of its own
        started = False

        def send_with_id(message: Message) -> Awaitable[None]:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message.get("headers", ()), (_HEADER, request_id)]
            return send(message)

        async def fail(status: int, message: str) -> None:
            if not started:  # else the server closes the connection, which tells the caller
                await send_error_message(send_with_id, status, message)

        try:
            await self._app(scope, receive, send_with_id)
        except asyncio.CancelledError:  # by the server, when the grace of a shutdown is over
            await fail(503, "The service has shut down before the answer was ready.")
        except Exception as error:  # noqa: BLE001 - the last resort of every request
            text = request_id.decode()
            _log.error("request %s failed:\n%s", text, safe_traceback(error))
            await fail(500, f"Internal error. Request id: {text}")


def request_id_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The caller's, if it is sane, or a new one."""
    for name, value in headers:
        if name == _HEADER and _VALID_ID.fullmatch(value):
            return bytes(value)
    # not a secret: os.urandom is a system call, and gives the interpreter's lock away meanwhile
    return b"%032x" % random.getrandbits(128)
