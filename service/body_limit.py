"""ASGI middleware: a body above the limit is refused before anything parses it."""

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class BodyLimit:
    """Collects a body up to the limit, and answers 413 above it.

    A Content-Length above the limit is refused without reading; a body without one is refused as
    soon as it has grown beyond. What the application receives is the whole body in one message.

    Args:
        app: the application.
        max_body_bytes: the limit.
    """

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _content_length(scope) > self._max_body_bytes:
            await self._refuse(scope, receive, send)
            return
        body = bytearray()
        more_body = True
        while more_body:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more_body = message.get("more_body", False)
            if len(body) > self._max_body_bytes:
                await self._refuse(scope, receive, send)
                return
        whole: Message | None = {"type": "http.request", "body": bytes(body), "more_body": False}

        async def replay() -> Message:
            nonlocal whole
            if whole is None:
                return await receive()
            message, whole = whole, None
            return message

        await self._app(scope, replay, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        sentence = f"The body is too large; at most {self._max_body_bytes} bytes are allowed."
        await JSONResponse({"error": sentence}, status_code=413)(scope, receive, send)


def _content_length(scope: Scope) -> int:
    """The announced length in bytes; 0 where none is."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0
