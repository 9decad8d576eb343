"""The memory of bodies and answers, as an ASGI application sees it."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import OverloadedError
from service.http.memory_budget import MemoryBudget
from service.http.middleware.request_memory import RequestMemoryMiddleware
from service.http.throttle import ExcludedRequests
from service.observability.request_context import RESERVE


def limit(
    app: ASGIApp,
    bodies: MemoryBudget | None = None,
    answers: MemoryBudget | None = None,
    excluded_requests: ExcludedRequests | None = None,
) -> RequestMemoryMiddleware:
    """Bound the bodies of an application at 10 bytes each."""
    return RequestMemoryMiddleware(
        app,
        10,
        bodies or MemoryBudget("bodies", 1_000, 0),
        answers or MemoryBudget("answers", 100, 0),
        excluded_requests or ExcludedRequests(),
    )


class Echo:
    """Answers with what it received, and counts its calls."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.later: list[str] = []

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Read one message, then ask whether there is more."""
        message = await receive()
        assert message["more_body"] is False
        self.bodies.append(message["body"])
        self.later.append((await receive())["type"])
        await send({"type": "http.response.start", "status": 200, "headers": []})


def call(
    echo: Echo,
    chunks: list[bytes],
    content_length: bytes | None = None,
    content_encoding: bytes | None = None,
    bodies: MemoryBudget | None = None,
) -> tuple[list[Message], int]:
    """Send a body in chunks through the limit of 10 bytes; the answer, and chunks not read."""
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

    asyncio.run(limit(echo, bodies)(scope, receive, send))
    return sent, len(list(messages))


def test_a_body_arrives_whole() -> None:
    """Chunks up to the limit are one message for the application; then comes what comes."""
    echo = Echo()
    sent, _ = call(echo, [b"12345", b"", b"67890"])
    assert sent[0]["status"] == 200
    assert echo.bodies == [b"1234567890"]
    assert echo.later == ["http.disconnect"]


def test_a_request_without_a_body() -> None:
    """GET has an empty body."""
    echo = Echo()
    call(echo, [b""])
    assert echo.bodies == [b""]


def test_an_announced_length_above_the_limit_is_refused_unread() -> None:
    """Not one byte of it is read."""
    echo = Echo()
    sent, unread = call(echo, [b"x" * 11], content_length=b"11")
    assert sent[0]["status"] == 413
    assert b"larger than 10 bytes" in sent[1]["body"]
    assert (echo.bodies, unread) == ([], 1)


def test_a_growing_body_is_refused_as_soon_as_it_is_too_large() -> None:
    """A body without an announced length is not read to its end."""
    echo = Echo()
    sent, unread = call(echo, [b"x" * 6, b"x" * 6, b"x" * 6])
    assert sent[0]["status"] == 413
    assert (echo.bodies, unread) == ([], 1)


def test_a_lie_about_the_length_does_not_help() -> None:
    """What is read counts, whatever was announced."""
    echo = Echo()
    sent, _ = call(echo, [b"x" * 6, b"x" * 6], content_length=b"2")
    assert sent[0]["status"] == 413


def test_a_caller_who_leaves_is_not_answered() -> None:
    """A connection that ends within the body ends the request."""
    echo = Echo()
    sent, _ = call(echo, [])
    assert (sent, echo.bodies) == ([], [])


def test_other_connections_pass() -> None:
    """The lifespan has no body."""
    passed = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        passed.append(scope["type"])

    async def nothing(*_: object) -> Any:
        return None

    asyncio.run(limit(app)({"type": "lifespan"}, nothing, nothing))
    assert passed == ["lifespan"]


@pytest.mark.parametrize("encoding", [b"", b"identity", b"Identity", b"IDENTITY "])
def test_a_body_that_is_not_encoded_is_taken(encoding: bytes) -> None:
    """The case of the word does not matter (RFC 9110, 8.4.1)."""
    echo = Echo()
    sent, _ = call(echo, [b"1"], content_encoding=encoding)
    assert (sent[0]["status"], echo.bodies) == (200, [b"1"])
    sent, _ = call(echo, [b"1"], content_encoding=encoding + b"gzip")
    assert sent[0]["status"] == 415


@pytest.mark.parametrize(
    ("length", "status"),
    [(b"9" * 5000, 413), (b"0" * 5000 + b"11", 413), (b"0" * 5000 + b"1", 200), (b"\xb2", 200)],
)
def test_lengths_of_any_number_of_digits(length: bytes, status: int) -> None:
    """None of them is an error of the service; the server has checked what is a number."""
    sent, _ = call(Echo(), [b"1"], length)
    assert sent[0]["status"] == status


def test_bodies_of_all_requests_are_bounded() -> None:
    """What has come of a body counts, not what was announced."""
    bodies = MemoryBudget("bodies", 10, 0)
    with bodies.claim() as other:
        other.add(7)
        sent, unread = call(Echo(), [b"12", b"34", b"56"], content_length=b"6", bodies=bodies)
        assert (sent[0]["status"], unread) == (429, 1)
        assert (b"retry-after", b"1") in sent[0]["headers"]
        assert b"try again in 1 s" in sent[1]["body"]
    assert call(Echo(), [b"12"], content_length=b"9", bodies=bodies)[0][0]["status"] == 200
    assert bodies.held_bytes == 0


def test_a_body_counts_until_it_is_answered() -> None:
    """With what is read in it: texts in other characters than ASCII may take four times as much."""
    for body, held_bytes in ((b"12345", 10), (b"1,2,3", 150), ("1234é".encode(), 30)):
        bodies = MemoryBudget("bodies", 1_000, 0)
        echo = Echo()
        held: list[int] = []
        echo.bodies = held_in(held, bodies)
        call(echo, [body], bodies=bodies)
        assert held == [held_bytes]
        assert bodies.held_bytes == 0


def held_in(held: list[int], bodies: MemoryBudget) -> Any:
    """A list of bodies that notes what is held when one is appended."""

    class Noting(list[bytes]):
        def append(self, _: bytes) -> None:
            held.append(bodies.held_bytes)

    return Noting()


def test_a_body_that_is_still_to_come_is_no_work() -> None:
    """Whether it comes or not."""
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
    asyncio.run(limited({"type": "http", "headers": []}, receive, send))
    assert seen == [1, 1, 0]
    assert excluded_requests.count == 0


def one_request(
    answers: MemoryBudget, excluded_requests: ExcludedRequests, app: ASGIApp, send: Send
) -> None:
    """Have an application answer a request with an empty body."""

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    limited = limit(app, answers=answers, excluded_requests=excluded_requests)
    asyncio.run(limited({"type": "http", "headers": []}, receive, send))


def test_the_memory_of_an_answer_is_held_until_it_is_made() -> None:
    """The next request finds no room meanwhile; then the connection bounds what is not read."""
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
        one_request(answers, excluded_requests, app, send)
        assert (answers.held_bytes, excluded_requests.count) == (0, 0)
    assert sent == [(60, 1), (0, 1)] * 3


def test_the_memory_of_an_answer_is_given_back_by_a_request_that_fails() -> None:
    """It is not excluded from the load estimate any more either."""
    answers, excluded_requests = MemoryBudget("answers", 100, 0), ExcludedRequests()

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        scope[RESERVE](60)
        raise ZeroDivisionError

    async def send(_: Message) -> None:
        raise AssertionError

    with pytest.raises(ZeroDivisionError):
        one_request(answers, excluded_requests, app, send)
    assert (answers.held_bytes, excluded_requests.count) == (0, 0)


def test_a_request_is_freed_when_it_is_answered() -> None:
    """A cycle would keep it, with its body, until the next collection."""
    seen: list[weakref.ref[Body]] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        scope[RESERVE](1)
        scope["body"] = Body()
        seen.append(weakref.ref(scope["body"]))

    async def send(_: Message) -> None:
        raise AssertionError

    gc.disable()
    try:
        one_request(MemoryBudget("answers", 100, 0), ExcludedRequests(), app, send)
        assert seen[0]() is None
    finally:
        gc.enable()


class Body:
    """What a weak reference can tell of whether it is still there."""
