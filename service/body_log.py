"""ASGI middleware: what callers send is logged, where somebody has asked for that."""

import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log = logging.getLogger(__name__)

MAX_CHARS = 10_000


class BodyLog:
    """Logs the body of each request, up to 10,000 characters.

    Args:
        app: the application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection, whose body comes in one message."""

        async def overheard() -> Message:
            message = await receive()
            if body := message.get("body"):
                text = body.decode(errors="replace")[:MAX_CHARS]
                _log.debug("a body", extra={"body": text, "body_bytes": len(body)})
            return message

        await self._app(scope, overheard, send)
