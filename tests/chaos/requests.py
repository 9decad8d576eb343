"""Requests and connections of attackers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

HOST = "127.0.0.1"
PATIENCE_S = 5.0  # maximum wait of an attacker for a response
PAUSE_S = 0.1  # pause of an attacker between requests, because the attacks are not a test of speed

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def head(path: str, length: int | None) -> bytes:
    """Return the head of a POST request.

    Args:
        length: value of Content-Length. None for a chunked body.
    """
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return (
        f"POST {path} HTTP/1.1\r\nHost: fillmask\r\n"
        f"Content-Type: application/json\r\n{size}\r\n\r\n"
    ).encode()


def post(path: str, value: Any) -> bytes:
    """Return a complete POST request.

    Args:
        value: body as bytes, or a value to encode as JSON.
    """
    body = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
    return head(path, len(body)) + body


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Streams]:
    """Keep a connection open until the end of the block."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def read_response(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Return the head of a response in lower case, and its body."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
    return head, await reader.readexactly(length)


async def ask(port: int, request: bytes) -> None:
    """Send a request on a new connection, read the response and pause."""
    with contextlib.suppress(OSError, EOFError, TimeoutError):
        async with asyncio.timeout(PATIENCE_S), connected(port) as (reader, writer):
            writer.write(request)
            await read_response(reader)
    await asyncio.sleep(PAUSE_S)


async def many(count: int, one: Callable[[], Awaitable[None]]) -> None:
    """Repeat an action without end, in concurrent tasks.

    Args:
        count: number of tasks.
        one: action to repeat.
    """
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(_forever(one))


async def _forever(one: Callable[[], Awaitable[None]]) -> None:
    while True:
        await one()
        await asyncio.sleep(0)


def random_word(draw: random.Random, letters: int) -> str:
    """Return up to `letters` random letters and spaces, with the letter e at the end."""
    return "".join(draw.choices("abcdefghijklmnopqrstuvwxyz ", k=letters - 1)).strip() + "e"
