"""ASGI middleware that ends requests at their deadline."""

import asyncio
from collections.abc import Awaitable, Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask.errors import MalformedRequestError, quote
from fillmask.http.send_json import send_error, send_error_message

HEADER = b"x-request-timeout-ms"
# ten minutes, longer than any client waits
MAX_TIMEOUT_MS = 600_000


class DeadlineMiddleware:
    """Middleware that cancels a request at its deadline and responds with 504.

    The cancellation removes the request's work from the queue. The timeout starts when the complete
    request has arrived. The X-Request-Timeout-Ms header of a request sets the timeout. A response
    that starts before the deadline continues after the deadline.

    Args:
        app: next ASGI application.
        default_ms: timeout of requests without the header, in milliseconds.
    """

    def __init__(self, app: ASGIApp, default_ms: int) -> None:
        self._app = app
        self._default_ms = default_ms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request within its timeout."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            timeout_ms = self._timeout_ms(scope["headers"])
        except MalformedRequestError as error:
            await send_error(send, error)
            return

        def send_in_time(message: Message) -> Awaitable[None]:
            if timeout.expired():
                # not a wait for the cancellation, which the application may have dropped
                raise TimeoutError
            if message["type"] == "http.response.start":
                timeout.reschedule(None)
            return send(message)

        try:
            async with asyncio.timeout(timeout_ms / 1000) as timeout:
                await self._app(scope, receive, send_in_time)
        except Exception:
            # an application may also raise another error than its cancellation at the deadline
            if not timeout.expired():
                raise
        if timeout.expired():  # never after the start of a response
            advice = "allow more time in X-Request-Timeout-Ms or send fewer texts"
            message = f"The response takes longer than {timeout_ms} ms; {advice}."
            await send_error_message(send, 504, message)

    def _timeout_ms(self, headers: Iterable[tuple[bytes, bytes]]) -> int:
        """Return the timeout of a request in milliseconds.

        Raises:
            MalformedRequestError: the header is invalid.
        """
        timeout_ms = self._default_ms
        for name, value in headers:
            if name == HEADER:
                # white space is not part of a value (RFC 9110, 5.5)
                digits = value.strip(b" \t")
                # any number of ten digits is above the maximum
                timeout_ms = int(digits) if digits.isdigit() and len(digits) < 10 else 0
                if not 1 <= timeout_ms <= MAX_TIMEOUT_MS:
                    allowed = f"a whole number from 1 to {MAX_TIMEOUT_MS}"
                    found = quote(bytes(digits).decode("latin-1"))
                    raise MalformedRequestError(
                        f"X-Request-Timeout-Ms must be {allowed} (got {found})."
                    )
        return timeout_ms
