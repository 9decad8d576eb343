"""ASGI middleware: a request is answered in its time, or told that it was not."""

import asyncio
from collections.abc import Awaitable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.responses import send_error_message

HEADER = b"x-request-timeout-ms"
# ten minutes: nobody who waits for longer is still there
MAX_TIMEOUT_MS = 600_000


class DeadlineMiddleware:
    """Ends a request whose time is over with 504; what it had waiting is not computed any more.

    The time is the caller's X-Request-Timeout-Ms, or else the default, counted from when the whole
    request is there. An answer that has begun is not cut off.

    Args:
        app: the application.
        default_ms: where the caller names none.
    """

    def __init__(self, app: ASGIApp, default_ms: int) -> None:
        self._app = app
        self._default_ms = default_ms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        timeout_ms = self._default_ms
        for name, value in scope["headers"]:
            if name == HEADER:
                digits = value.strip(b" \t")  # white space is no part of a value (RFC 9110, 5.5)
                # more digits would be no number that is allowed
                timeout_ms = int(digits) if digits.isdigit() and len(digits) < 10 else 0
                if not 1 <= timeout_ms <= MAX_TIMEOUT_MS:
                    sentence = f"must be a whole number from 1 to {MAX_TIMEOUT_MS}"
                    await send_error_message(send, 400, f"X-Request-Timeout-Ms {sentence}.")
                    return

        def send_in_time(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                if timeout.expired():
                    return _cancellation()
                timeout.reschedule(None)
            return send(message)

        try:
            async with asyncio.timeout(timeout_ms / 1000) as timeout:
                await self._app(scope, receive, send_in_time)
        except TimeoutError:
            if not timeout.expired():
                raise
            await send_error_message(send, 504, f"There was no answer within {timeout_ms} ms.")


async def _cancellation() -> None:
    """Wait for the cancellation that is on its way."""
    await asyncio.Event().wait()
