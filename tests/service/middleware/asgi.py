"""Requests to ASGI applications without a server."""

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send


async def call(
    app: ASGIApp, chunks: list[bytes] | None = None, *, pause_s: float = 0, **scope: Any
) -> list[Message]:
    """Send a request whose body comes in chunks, and return the messages of the response.

    Args:
        chunks: parts of the body, which the application takes from the list. The client disconnects
            after the last one.
        pause_s: pause before each chunk.
        scope: fields of the ASGI scope.
    """
    waiting = [b""] if chunks is None else chunks
    sent: list[Message] = []

    async def receive() -> Message:
        if pause_s:
            await asyncio.sleep(pause_s)
        if not waiting:
            return {"type": "http.disconnect"}
        chunk = waiting.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(waiting)}

    async def send(message: Message) -> None:
        sent.append(message)

    whole = {"type": "http", "method": "POST", "path": "/a path", "headers": []} | scope
    await app(whole, receive, send)
    return sent


async def respond(
    send: Send, status: int = 200, body: bytes = b"fine", headers: Sequence[Any] = ()
) -> None:
    """Send a complete response."""
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})


async def fine(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Application that responds with status 200 without reading the body."""
    await respond(send)
