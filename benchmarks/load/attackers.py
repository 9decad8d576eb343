"""Requests of attackers, as bytes, and connections that are dropped when they are done."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

HOST = "127.0.0.1"
# what an attacker waits for at most before the next attempt
PATIENCE_S = 5.0
# attackers that are rejected come again, but not as fast as they can: this is no test of speed
PAUSE_S = 0.1

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def head(path: str, length: int | None, *, content_type: str = "application/json") -> bytes:
    """Return the head of a POST; without a length its body is chunked."""
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return (
        f"POST {path} HTTP/1.1\r\nHost: fillmask\r\nContent-Type: {content_type}\r\n{size}\r\n\r\n"
    ).encode()


def post(path: str, value: Any) -> bytes:
    """Return a whole request."""
    body = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
    return head(path, len(body)) + body


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Streams]:
    """Open a connection, and abort it at the end."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def status_of(reader: asyncio.StreamReader) -> int:
    """Read one answer to its end."""
    answer_head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b"content-length: " in answer_head:
        await reader.readexactly(int(answer_head.split(b"content-length: ")[1].split(b"\r\n")[0]))
    return int(answer_head.split(b" ", 2)[1])


async def ask(port: int, request: bytes) -> None:
    """Send a request on a connection of its own, read the answer, and pause."""
    with contextlib.suppress(OSError, EOFError, TimeoutError):
        async with asyncio.timeout(PATIENCE_S), connected(port) as (reader, writer):
            writer.write(request)
            await status_of(reader)
    await asyncio.sleep(PAUSE_S)


async def many(count: int, one: Callable[[], Awaitable[None]]) -> None:
    """Do something without end, so many times at once."""
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(_forever(one))


async def _forever(one: Callable[[], Awaitable[None]]) -> None:
    while True:
        await one()
        await asyncio.sleep(0)


def random_word(draw: random.Random, letters: int) -> str:
    """Return letters that are hardly ever drawn twice."""
    return "".join(draw.choices("abcdefghijklmnopqrstuvwxyz ", k=letters - 1)).strip() + "e"
