"""Timeout of a request."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic_core import from_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask.concurrency import gather_or_cancel
from fillmask.errors import quote
from fillmask.http.middleware.deadline import MAX_TIMEOUT_MS, DeadlineMiddleware
from tests.service.fake_runtime import FakeRuntime, running_batcher, text


async def late(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Application that never responds."""
    await asyncio.Event().wait()


async def slow(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Application that begins its response immediately and ends after the timeout."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await asyncio.sleep(0.1)
    await send({"type": "http.response.body", "body": b"whole"})


async def in_the_same_moment(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Application that begins its response after the timeout, before its cancellation."""

    async def answer() -> None:
        time.sleep(0.05)  # noqa: ASYNC251 - the timeout must pass during this call
        await asyncio.sleep(0)  # the timeout ends now
        await asyncio.sleep(0)  # the task's waiter is notified next
        await slow(_scope, _receive, send)

    async with asyncio.TaskGroup() as group:
        group.create_task(answer())


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


async def call(app: Any, headers: Sequence[tuple[bytes, bytes]] = (), default_ms: int = 30) -> Any:
    """Send one request and return the messages of the response."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await DeadlineMiddleware(app, default_ms)({"type": "http", "headers": headers}, receive, send)
    return sent


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
    start, body = await call(late, headers)
    assert start["status"] == 504
    assert f"longer than {named} ms;" in from_json(body["body"])["error"]


@pytest.mark.parametrize(
    "app", [in_the_same_moment, fails_in_the_same_moment, responds_late, returns_late, fails_late]
)
async def test_request_past_its_deadline_gets_one_504(app: ASGIApp) -> None:
    # The response is 504, not 500, even if the application drops the cancellation. The calling
    # task has no pending cancellation.
    async with asyncio.timeout(5):
        sent = await call(app)
    assert [message.get("status") for message in sent] == [504, None]
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)  # raises if a cancellation remains


async def test_cancellation_by_the_server_is_not_the_deadline() -> None:
    # The result is the same if the deadline passes at the same moment.
    task = asyncio.create_task(call(late))
    await asyncio.sleep(0)
    time.sleep(0.05)  # noqa: ASYNC251 - the timeout must pass during this call
    await asyncio.sleep(0)  # in the next iteration, the timeout follows the step
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_answer_that_has_begun_is_not_cut_off() -> None:
    # Only the beginning of the response must come before the timeout.
    sent = await call(slow)
    assert sent[-1]["body"] == b"whole"
    assert [message["type"] for message in sent].count("http.response.start") == 1


@pytest.mark.parametrize(
    "value", [b"", b"0", b"-1", b"1.5", b"soon", b"%d" % (MAX_TIMEOUT_MS + 1), b"9" * 5000, b"\xb2"]
)
async def test_invalid_deadline_is_rejected(value: bytes) -> None:
    start, body = await call(late, [(b"x-request-timeout-ms", value)])
    assert start["status"] == 400
    expected = (
        "X-Request-Timeout-Ms must be a whole number from 1 to 600000 "
        f"(got {quote(value.decode('latin-1'))})."
    )
    assert from_json(body["body"]) == {"error": expected}


async def test_longest_deadline_is_accepted() -> None:
    start, *_ = await call(slow, [(b"x-request-timeout-ms", b"%d" % MAX_TIMEOUT_MS)])
    assert start["status"] == 200


async def test_timeout_of_the_application_is_not_the_deadline() -> None:
    with pytest.raises(TimeoutError):
        await call(broken, default_ms=1000)


async def test_late_requests_are_not_computed() -> None:
    # The queue has room again for the tokens of other requests.
    fake = FakeRuntime()

    async with running_batcher(fake, max_waiting_tokens=10) as batcher:
        fake.go.clear()
        running = asyncio.create_task(batcher.submit([text(1, 5)]))
        await fake.wait_until_at_work()

        async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
            await batcher.submit([text(2, 5)])

        start, _ = await call(app)
        assert start["status"] == 504
        fake.go.set()
        await running
        await batcher.submit([text(3, 10)])
    assert fake.seen == [1, 3]
