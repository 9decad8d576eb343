"""Limits on the bytes of bodies and responses, enforced around an ASGI application."""

import asyncio
import gc
import weakref
from collections.abc import Sequence

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask.errors import OverloadedError, TooLargeError
from fillmask.middleware import transfer
from fillmask.middleware.memory_budget import MemoryBudget
from fillmask.middleware.transfer import TransferMiddleware
from fillmask.observability.request_context import CLAIM

CLOSE = (b"connection", b"close")


class Client:
    """Client that sends a body in chunks and keeps the response."""

    def __init__(self, chunks: Sequence[bytes], headers: Sequence[tuple[bytes, bytes]]) -> None:
        self.headers = headers
        self.chunks = list(chunks)
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        """Return the next chunk, or the disconnect after the last one."""
        if not self.chunks:
            return {"type": "http.disconnect"}
        chunk = self.chunks.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(self.chunks)}

    async def send(self, message: Message) -> None:
        """Keep a message of the response."""
        self.sent.append(message)

    @property
    def closes(self) -> bool:
        """True if the response closes the connection."""
        return CLOSE in self.sent[0]["headers"]

    @property
    def content(self) -> bytes:
        """The body of the response."""
        assert [one["more_body"] for one in self.sent[1:-1]] == [True] * (len(self.sent) - 2)
        assert not self.sent[-1].get("more_body")
        return b"".join(one["body"] for one in self.sent[1:])


async def call(
    app: ASGIApp,
    chunks: Sequence[bytes] = (),
    *headers: tuple[bytes, bytes],
    budget: MemoryBudget | None = None,
    stopping: bool = False,
) -> Client:
    """Send a request to an application whose bodies may have 10 bytes."""
    client = Client(chunks, headers)
    scope = {"type": "http", "headers": headers}
    limited = TransferMiddleware(app, 10, budget or MemoryBudget(1_000, 0), lambda: stopping)
    await limited(scope, client.receive, client.send)
    return client


def length(size: int) -> tuple[bytes, bytes]:
    """Return the header Content-Length."""
    return b"content-length", b"%d" % size


async def respond(send: Send, body: bytes = b"fine") -> None:
    """Send a complete response."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def echo(_scope: Scope, receive: Receive, send: Send) -> None:
    """Application that responds with the body of the request."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    await respond(send, body)


async def refuse(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Application that responds without reading the body."""
    await respond(send)


async def test_body_within_the_limit_passes() -> None:
    client = await call(echo, [b"12345", b"", b"67890"], length(10))
    assert client.content == b"1234567890"
    assert not client.closes


@pytest.mark.parametrize("headers", [[length(11)], [length(2)], []])
async def test_body_above_the_limit_is_refused(headers: list[tuple[bytes, bytes]]) -> None:
    # A declared length is refused at once, other bodies with the chunk that exceeds the limit.
    with pytest.raises(TooLargeError, match=r"at most 10 bytes \(got 1[12]\)"):
        await call(echo, [b"x" * 6, b"x" * 6, b"x" * 6], *headers)


async def test_response_that_leaves_a_body_unread_closes_the_connection() -> None:
    # So no byte of the body can become the next request.
    for headers in ([length(4)], [(b"transfer-encoding", b"chunked")]):
        client = await call(refuse, [b"12", b"34"], *headers)
        assert client.closes
        assert client.content == b"fine"
    for headers in ([length(0)], []):
        assert not (await call(refuse, [], *headers)).closes


async def test_declared_body_is_discarded_behind_the_response() -> None:
    # A reset because of unread bytes could overtake the response.
    client = await call(refuse, [b"1"] * 9, length(9))
    assert client.chunks == []
    chunked = (b"transfer-encoding", b"chunked")
    client = await call(refuse, [b"1" * 20_000] * 9, chunked)
    assert client.chunks == []
    client = await call(refuse, [b"1"] * 9, chunked)
    assert len(client.chunks) == 8


async def test_discarding_takes_no_longer_than_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "LINGER_S", 0.05)
    client = Client([], [length(9)])

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    limited = TransferMiddleware(refuse, 10, MemoryBudget(1_000, 0), lambda: False)
    async with asyncio.timeout(5):
        await limited({"type": "http", "headers": [length(9)]}, receive, client.send)
    assert client.content == b"fine"


async def test_stopping_service_closes_its_connections() -> None:
    assert (await call(echo, [b"1"], length(1), stopping=True)).closes


async def test_large_response_leaves_in_parts() -> None:
    body = bytes(range(256)) * 1_000

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await respond(send, body)

    client = await call(app)
    assert client.content == body
    assert max(len(one["body"]) for one in client.sent[1:]) == transfer.PART_BYTES


async def test_body_and_response_count_until_the_end_of_the_request() -> None:
    budget = MemoryBudget(100, 0)
    held: list[int] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        scope[CLAIM].add(60)
        with pytest.raises(OverloadedError):
            scope[CLAIM].add(50)
        await respond(send)
        held.append(budget.held_bytes)

    for _ in range(3):
        await call(app, [b"12345"], length(5), budget=budget)
        assert budget.held_bytes == 0
    assert held == [65] * 3
    with pytest.raises(OverloadedError, match="memory"):
        await call(echo, [b"12345", b"67890"], length(10), budget=MemoryBudget(8, 0))


async def test_request_is_freed_when_it_is_answered() -> None:
    # A reference cycle would keep the request and its body until the next collection.
    seen: list[weakref.ref[Body]] = []

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        scope["body"] = Body()
        seen.append(weakref.ref(scope["body"]))
        await respond(send)

    gc.disable()
    try:
        await call(app)
        assert seen[0]() is None
    finally:
        gc.enable()


class Body:
    """Body that a weak reference can point to."""
