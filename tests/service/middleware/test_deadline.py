"""Timeout of a request."""

import asyncio
import contextlib
import time
from collections.abc import Sequence

import pytest
from pydantic_core import from_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask.concurrency import gather_or_cancel
from fillmask.errors import quote
from fillmask.middleware import cancellation
from fillmask.middleware.cancellation import MAX_TIMEOUT_MS, DeadlineMiddleware
from fillmask.middleware.responses import RequestIdMiddleware
from fillmask.middleware.transfer import PART_BYTES
from tests.service.middleware.asgi import call, respond


async def late(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Application that never responds."""
    await asyncio.Event().wait()


async def slow(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Application that begins its response immediately and ends after the timeout."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await asyncio.sleep(0.1)
    await send({"type": "http.response.body", "body": b"whole"})


async def fails_in_the_same_moment(scope: Scope, receive: Receive, send: Send) -> None:
    """Application that fails in a group and responds, in the iteration of the timeout."""

    async def fail() -> None:
        time.sleep(0.05)  # noqa: ASYNC251 - the timeout must pass during this call
        await asyncio.sleep(0)  # in the next iteration, the timeout follows the error
        raise LookupError

    try:
        await gather_or_cancel([asyncio.Event().wait(), fail()])
    except LookupError:
        await slow(scope, receive, send)


async def responds_late(scope: Scope, receive: Receive, send: Send) -> None:
    """Application that drops its cancellation and responds."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    await slow(scope, receive, send)


async def returns_late(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Application that drops its cancellation and ends without a response."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


async def fails_late(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Application that raises an error instead of its cancellation."""
    try:
        await asyncio.Event().wait()
    finally:
        raise LookupError


async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Application whose own error is a TimeoutError."""
    raise TimeoutError


async def ask(
    app: ASGIApp,
    headers: Sequence[tuple[bytes, bytes]] = (),
    default_ms: int = 30,
    chunks: list[bytes] | None = None,
    pause_s: float = 0,
) -> list[Message]:
    """Send one request through the middleware and return the messages of the response."""
    limited = RequestIdMiddleware(DeadlineMiddleware(app, default_ms))
    method = "POST" if chunks else "GET"
    return await call(limited, chunks or [], pause_s=pause_s, method=method, headers=headers)


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ([], 30),
        ([(b"x-request-timeout-ms", b"20")], 20),
        ([(b"x-request-timeout-ms", b" \t20 \t")], 20),  # RFC 9110, 5.5
    ],
)
async def test_late_answer_is_504(headers: list[tuple[bytes, bytes]], named: int) -> None:
    # The error contains the timeout in milliseconds, which is the default or the client's.
    start, body = await ask(late, headers)
    assert start["status"] == 504
    assert f"longer than {named} ms;" in from_json(body["body"])["error"]


@pytest.mark.parametrize("app", [fails_in_the_same_moment, responds_late, returns_late, fails_late])
async def test_request_past_its_deadline_gets_one_504(app: ASGIApp) -> None:
    # The response is 504, not 500, even if the application drops the cancellation. The calling
    # task has no pending cancellation.
    async with asyncio.timeout(5):
        sent = await ask(app)
    assert [message.get("status") for message in sent] == [504, None]
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)  # raises if a cancellation remains


async def test_cancellation_by_the_server_is_not_the_deadline() -> None:
    # The result is the same if the deadline passes at the same moment.
    task = asyncio.create_task(ask(late))
    await asyncio.sleep(0)
    time.sleep(0.05)  # noqa: ASYNC251 - the timeout must pass during this call
    await asyncio.sleep(0)  # in the next iteration, the timeout follows the step
    task.cancel()
    start, _ = await task
    assert start["status"] == 503


async def test_answer_that_has_begun_is_not_cut_off() -> None:
    # Only the beginning of the response must come before the timeout.
    sent = await ask(slow, [(b"x-request-timeout-ms", b"%d" % MAX_TIMEOUT_MS)])
    assert sent[-1]["body"] == b"whole"
    sent = await ask(slow)
    assert sent[-1]["body"] == b"whole"
    assert [message["type"] for message in sent].count("http.response.start") == 1


@pytest.mark.parametrize(
    "value", [b"", b"0", b"-1", b"1.5", b"%d" % (MAX_TIMEOUT_MS + 1), b"9" * 5000, b"\xb2"]
)
async def test_invalid_deadline_is_rejected(value: bytes) -> None:
    start, body = await ask(late, [(b"x-request-timeout-ms", value)])
    assert start["status"] == 400
    expected = (
        "X-Request-Timeout-Ms must be a whole number from 1 to 600000 "
        f"(got {quote(value.decode('latin-1'))})."
    )
    assert from_json(body["body"]) == {"error": expected}


async def test_timeout_of_the_application_is_not_the_deadline() -> None:
    start, _ = await ask(broken, default_ms=1000)
    assert start["status"] == 500


async def read_and_answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Application that reads the whole body, then responds."""
    while (await receive())["more_body"]:
        pass
    await slow(scope, receive, send)


async def read_and_wait(_scope: Scope, receive: Receive, _send: Send) -> None:
    """Application that reads the whole body and never responds."""
    while (await receive())["more_body"]:
        pass
    await asyncio.Event().wait()


async def test_the_time_limit_starts_with_the_complete_request() -> None:
    # A body may take longer than the limit of the response.
    start, *_ = await ask(read_and_answer, (), 300, [b"a"] * 4, 0.1)
    assert start["status"] == 200
    start, body = await ask(read_and_wait, (), 30, [b"a"] * 4, 0.02)
    assert start["status"] == 504
    assert b"longer than 30 ms;" in body["body"]


async def test_a_body_that_does_not_arrive_is_408(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancellation, "RECEIVE_TIMEOUT_S", 0.05)
    start, body = await ask(read_and_answer, (), 30, [b"a"] * 100, 0.02)
    assert start["status"] == 408
    assert b"must arrive within 0.05 s" in body["body"]


async def test_a_response_that_does_not_leave_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    # The middleware ends the request, and the server then closes the connection.
    monkeypatch.setattr(cancellation, "SEND_TIMEOUT_S", 0.05)
    sent: list[str] = []

    async def send(message: Message) -> None:
        sent.append(message["type"])
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def large(_scope: Scope, _receive: Receive, send: Send) -> None:
        await respond(send, body=b"x" * PART_BYTES)

    scope = {"type": "http", "method": "GET", "headers": []}
    app = RequestIdMiddleware(DeadlineMiddleware(large, 10_000))
    async with asyncio.timeout(5) as patience:
        await app(scope, lambda: asyncio.sleep(0), send)  # type: ignore[arg-type, return-value]
    assert not patience.expired()  # the middleware would drop that cancellation
    assert sent == ["http.response.start", "http.response.body"]
