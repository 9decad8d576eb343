"""Limits on the bytes of bodies and responses, enforced around an ASGI application."""

import asyncio
import gc
import weakref

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask.errors import OverloadedError, TooLargeError
from fillmask.middleware import transfer
from fillmask.middleware.transfer import MemoryBudget, TransferMiddleware
from fillmask.observability.request_context import CLAIM
from tests.service.middleware.asgi import call, fine, respond

CLOSE = (b"connection", b"close")
CHUNKED = (b"transfer-encoding", b"chunked")


async def ask(
    app: ASGIApp,
    chunks: list[bytes] | None = None,
    *headers: tuple[bytes, bytes],
    budget: MemoryBudget | None = None,
    stopping: bool = False,
) -> list[Message]:
    """Send a request to an application whose bodies may have 10 bytes."""
    limited = TransferMiddleware(app, 10, budget or MemoryBudget(1_000, 0), lambda: stopping)
    return await call(limited, chunks, headers=headers)


def closes(sent: list[Message]) -> bool:
    """Return whether a response closes the connection."""
    return CLOSE in sent[0]["headers"]


def content_of(sent: list[Message]) -> bytes:
    """Return the body of a complete response."""
    assert [one["more_body"] for one in sent[1:-1]] == [True] * (len(sent) - 2)
    assert not sent[-1].get("more_body")
    return b"".join(one["body"] for one in sent[1:])


def length(size: int) -> tuple[bytes, bytes]:
    """Return the header Content-Length."""
    return b"content-length", b"%d" % size


async def echo(_scope: Scope, receive: Receive, send: Send) -> None:
    """Application that responds with the body of the request."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    await respond(send, body=body)


async def test_body_within_the_limit_passes() -> None:
    sent = await ask(echo, [b"12345", b"", b"67890"], length(10))
    assert content_of(sent) == b"1234567890"
    assert not closes(sent)


@pytest.mark.parametrize("headers", [[length(11)], [length(2)], []])
async def test_body_above_the_limit_is_refused(headers: list[tuple[bytes, bytes]]) -> None:
    # A declared length is refused at once, other bodies with the chunk that exceeds the limit.
    with pytest.raises(TooLargeError, match=r"at most 10 bytes \(got 1[12]\)"):
        await ask(echo, [b"x" * 6, b"x" * 6, b"x" * 6], *headers)


async def test_response_that_leaves_a_body_unread_closes_the_connection() -> None:
    # So no byte of the body can become the next request.
    for headers in ([length(4)], [CHUNKED]):
        sent = await ask(fine, [b"12", b"34"], *headers)
        assert closes(sent)
        assert content_of(sent) == b"fine"
    for headers in ([length(0)], []):
        assert not closes(await ask(fine, [], *headers))


@pytest.mark.parametrize(
    ("chunks", "header", "left"),
    [([b"1"] * 9, length(9), 0), ([b"1" * 20_000] * 9, CHUNKED, 0), ([b"1"] * 9, CHUNKED, 8)],
)
async def test_declared_body_is_discarded_behind_the_response(
    chunks: list[bytes], header: tuple[bytes, bytes], left: int
) -> None:
    # A reset because of unread bytes could overtake the response.
    await ask(fine, chunks, header)
    assert len(chunks) == left


async def test_discarding_takes_no_longer_than_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "LINGER_S", 0.05)
    limited = TransferMiddleware(fine, 10, MemoryBudget(1_000, 0), lambda: False)
    async with asyncio.timeout(5):
        sent = await call(limited, [b"1"] * 9, pause_s=60, headers=[length(9)])
    assert content_of(sent) == b"fine"


async def test_stopping_service_closes_its_connections() -> None:
    assert closes(await ask(echo, [b"1"], length(1), stopping=True))


async def test_large_response_leaves_in_parts() -> None:
    body = bytes(range(256)) * 1_000

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await respond(send, body=body)

    sent = await ask(app)
    assert content_of(sent) == body
    assert max(len(one["body"]) for one in sent[1:]) == transfer.PART_BYTES


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
        await ask(app, [b"12345"], length(5), budget=budget)
        assert budget.held_bytes == 0
    assert held == [65] * 3
    with pytest.raises(OverloadedError, match="memory"):
        await ask(echo, [b"12345", b"67890"], length(10), budget=MemoryBudget(8, 0))


async def test_request_is_freed_when_it_is_answered() -> None:
    # A reference cycle would keep the request and its body until the next collection.
    seen: list[weakref.ref[Body]] = []

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        scope["body"] = Body()
        seen.append(weakref.ref(scope["body"]))
        await respond(send)

    gc.disable()
    try:
        await ask(app)
        assert seen[0]() is None
    finally:
        gc.enable()


class Body:
    """Body that a weak reference can point to."""
