"""Memory limits of bodies and responses, enforced around an ASGI application."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask.errors import OverloadedError
from fillmask.http.memory_budget import MemoryBudget
from fillmask.http.middleware.request_memory import RequestMemoryMiddleware
from fillmask.http.throttle import ExcludedRequests
from fillmask.observability.request_context import RESERVE


def limit(
    app: ASGIApp,
    bodies: MemoryBudget | None = None,
    answers: MemoryBudget | None = None,
    excluded_requests: ExcludedRequests | None = None,
) -> RequestMemoryMiddleware:
    """Return the application with a limit of 10 bytes per body."""
    return RequestMemoryMiddleware(
        app,
        10,
        bodies or MemoryBudget("bodies", 1_000, 0),
        answers or MemoryBudget("answers", 100, 0),
        excluded_requests or ExcludedRequests(),
    )


class Echo:
    """Application that records its received messages."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.later: list[str] = []

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        assert message["more_body"] is False
        self.bodies.append(message["body"])
        self.later.append((await receive())["type"])
        await send({"type": "http.response.start", "status": 200, "headers": []})


async def call(
    echo: Echo,
    chunks: list[bytes],
    content_length: bytes | None = None,
    content_encoding: bytes | None = None,
    bodies: MemoryBudget | None = None,
) -> tuple[list[Message], int]:
    """Send a body in chunks and return the response and the number of unread chunks."""
    headers = [(b"content-length", content_length)] if content_length is not None else []
    if content_encoding is not None:
        headers.append((b"content-encoding", content_encoding))
    scope: dict[str, Any] = {"type": "http", "headers": headers}
    messages: Iterator[Message] = iter(
        [
            {"type": "http.request", "body": chunk, "more_body": i < len(chunks) - 1}
            for i, chunk in enumerate(chunks)
        ]
    )
    sent: list[Message] = []

    async def receive() -> Message:
        return next(messages, {"type": "http.disconnect"})

    async def send(message: Message) -> None:
        sent.append(message)

    await limit(echo, bodies)(scope, receive, send)
    return sent, len(list(messages))


async def test_body_arrives_in_one_message() -> None:
    # The application gets one message for all chunks.
    echo = Echo()
    sent, _ = await call(echo, [b"12345", b"", b"67890"])
    assert sent[0]["status"] == 200
    assert echo.bodies == [b"1234567890"]
    assert echo.later == ["http.disconnect"]


async def test_a_request_without_a_body() -> None:
    echo = Echo()
    await call(echo, [b""])
    assert echo.bodies == [b""]


async def test_content_length_above_the_limit_is_rejected_unread() -> None:
    echo = Echo()
    sent, unread = await call(echo, [b"x" * 11], content_length=b"11")
    assert sent[0]["status"] == 413
    assert b"at most 10 bytes (got 11)" in sent[1]["body"]
    assert (echo.bodies, unread) == ([], 1)


async def test_growing_body_is_rejected_as_soon_as_it_is_too_large() -> None:
    echo = Echo()
    sent, unread = await call(echo, [b"x" * 6, b"x" * 6, b"x" * 6])
    assert sent[0]["status"] == 413
    assert (echo.bodies, unread) == ([], 1)


async def test_wrong_content_length_does_not_raise_the_limit() -> None:
    # The limit applies to the received bytes, not to Content-Length.
    echo = Echo()
    sent, _ = await call(echo, [b"x" * 6, b"x" * 6], content_length=b"2")
    assert sent[0]["status"] == 413


async def test_disconnected_client_is_not_answered() -> None:
    echo = Echo()
    sent, _ = await call(echo, [])
    assert (sent, echo.bodies) == ([], [])


async def test_other_connections_pass() -> None:
    passed = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        passed.append(scope["type"])

    async def nothing(*_: object) -> Any:
        return None

    await limit(app)({"type": "lifespan"}, nothing, nothing)
    assert passed == ["lifespan"]


@pytest.mark.parametrize("encoding", [b"", b"identity", b"Identity", b"IDENTITY "])
async def test_body_must_not_be_encoded(encoding: bytes) -> None:
    # The case of an encoding's name does not matter (RFC 9110, section 8.4.1).
    echo = Echo()
    sent, _ = await call(echo, [b"1"], content_encoding=encoding)
    assert (sent[0]["status"], echo.bodies) == (200, [b"1"])
    sent, _ = await call(echo, [b"1"], content_encoding=encoding + b"gzip")
    assert sent[0]["status"] == 415


@pytest.mark.parametrize(
    ("length", "status"),
    [(b"9" * 5000, 413), (b"0" * 5000 + b"11", 413), (b"0" * 5000 + b"1", 200), (b"\xb2", 200)],
)
async def test_lengths_of_any_number_of_digits(length: bytes, status: int) -> None:
    # Even a Content-Length of 5000 digits does not cause status 500.
    sent, _ = await call(Echo(), [b"1"], length)
    assert sent[0]["status"] == status


async def test_bodies_of_all_requests_are_bounded() -> None:
    # The limit applies to the received bytes, not to Content-Length.
    bodies = MemoryBudget("bodies", 10, 0)
    with bodies.claim() as other:
        other.add(7)
        sent, unread = await call(Echo(), [b"12", b"34", b"56"], content_length=b"6", bodies=bodies)
        assert (sent[0]["status"], unread) == (429, 1)
        assert (b"retry-after", b"1") in sent[0]["headers"]
        assert b"bodies" in sent[1]["body"]
    assert (await call(Echo(), [b"12"], content_length=b"9", bodies=bodies))[0][0]["status"] == 200
    assert bodies.held_bytes == 0


async def test_body_counts_until_it_is_answered() -> None:
    # The memory limit also counts the texts decoded from a body.
    # A decoded text with characters beyond ASCII may take four times the bytes of the body.
    for body, held_bytes in ((b"12345", 10), (b"1,2,3", 150), ("1234é".encode(), 30)):
        bodies = MemoryBudget("bodies", 1_000, 0)
        echo = Echo()
        held: list[int] = []
        echo.bodies = held_in(held, bodies)
        await call(echo, [body], bodies=bodies)
        assert held == [held_bytes]
        assert bodies.held_bytes == 0


def held_in(held: list[int], bodies: MemoryBudget) -> Any:
    """Return a list that adds the budget's held bytes to `held` for each appended body."""

    class Noting(list[bytes]):
        def append(self, _: bytes) -> None:
            held.append(bodies.held_bytes)

    return Noting()


async def test_request_whose_body_is_incomplete_is_not_in_the_queue() -> None:
    excluded_requests = ExcludedRequests()
    seen: list[int] = []

    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        seen.append(excluded_requests.count)

    async def receive() -> Message:
        seen.append(excluded_requests.count)
        more = len(seen) < 2
        return {"type": "http.request", "body": b"1", "more_body": more}

    async def send(_: Message) -> None:
        pass

    limited = limit(app, excluded_requests=excluded_requests)
    await limited({"type": "http", "headers": []}, receive, send)
    assert seen == [1, 1, 0]
    assert excluded_requests.count == 0


async def one_request(
    answers: MemoryBudget, excluded_requests: ExcludedRequests, app: ASGIApp, send: Send
) -> None:
    """Send a request with an empty body to an application."""

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    limited = limit(app, answers=answers, excluded_requests=excluded_requests)
    await limited({"type": "http", "headers": []}, receive, send)


async def test_memory_of_an_answer_is_held_until_it_is_made() -> None:
    # Until the response is complete, a reservation above the rest of the budget fails.
    answers, excluded_requests = MemoryBudget("answers", 100, 0), ExcludedRequests()
    sent: list[tuple[int, int]] = []

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        scope[RESERVE](60)
        assert excluded_requests.count == 1
        with pytest.raises(OverloadedError):
            scope[RESERVE](50)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"1"})

    async def send(_: Message) -> None:
        sent.append((answers.held_bytes, excluded_requests.count))

    for _ in range(3):
        await one_request(answers, excluded_requests, app, send)
        assert (answers.held_bytes, excluded_requests.count) == (0, 0)
    assert sent == [(60, 1), (0, 1)] * 3


async def test_failed_request_gives_back_the_memory_of_its_answer() -> None:
    # The count of requests outside of the queue also returns to 0.
    answers, excluded_requests = MemoryBudget("answers", 100, 0), ExcludedRequests()

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        scope[RESERVE](60)
        raise ZeroDivisionError

    async def send(_: Message) -> None:
        raise AssertionError

    with pytest.raises(ZeroDivisionError):
        await one_request(answers, excluded_requests, app, send)
    assert (answers.held_bytes, excluded_requests.count) == (0, 0)


async def test_request_is_freed_when_it_is_answered() -> None:
    # A reference cycle would keep the request and its body until the next collection.
    seen: list[weakref.ref[Body]] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        scope[RESERVE](1)
        scope["body"] = Body()
        seen.append(weakref.ref(scope["body"]))

    async def send(_: Message) -> None:
        raise AssertionError

    gc.disable()
    try:
        await one_request(MemoryBudget("answers", 100, 0), ExcludedRequests(), app, send)
        assert seen[0]() is None
    finally:
        gc.enable()


class Body:
    """Body that a weak reference can point to."""
