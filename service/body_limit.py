"""ASGI middleware: a body above the limit is refused before anything parses it."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import quote
from service.headers import header
from service.json_answer import send_sentence


class BodyLimit:
    """Collects a body up to the limit, and answers 413 above it.

    A Content-Length above the limit is refused without reading; a body without one is refused as
    soon as it has grown beyond. A compressed body is refused with 415, for its size is not what is
    announced. What the application receives is the whole body in one message.

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
        encoding = header(scope, b"content-encoding") or ""
        if encoding.strip(" \t").lower() not in {"", "identity"}:
            sentence = f"The content encoding {quote(encoding)} is not read; send plain JSON."
            await send_sentence(send, 415, sentence)
            return
        length = header(scope, b"content-length") or ""
        # int() takes no more than 4,300 digits, and none beyond ASCII
        digits = length.lstrip("0") if length.isascii() and length.isdigit() else ""
        if len(digits) > 18 or int(digits or "0") > self._max_body_bytes:
            await self._refuse(send)
            return
        whole: Message | None = await self._collect(receive)
        if whole is None:
            return
        if len(whole["body"]) > self._max_body_bytes:
            await self._refuse(send)
            return

        async def replay() -> Message:
            nonlocal whole
            if whole is None:
                return await receive()
            message, whole = whole, None
            return message

        await self._app(scope, replay, send)

    async def _collect(self, receive: Receive) -> Message | None:
        """The body in one message, or its too large beginning; None when the caller is gone."""
        chunks: list[bytes] = []
        size_bytes = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            chunk = message.get("body", b"")
            chunks.append(chunk)
            size_bytes += len(chunk)
            if size_bytes > self._max_body_bytes or not message.get("more_body"):
                return {"type": "http.request", "body": b"".join(chunks), "more_body": False}

    async def _refuse(self, send: Send) -> None:
        limit = f"at most {self._max_body_bytes} bytes are allowed"
        await send_sentence(send, 413, f"The body is too large; {limit}.")
