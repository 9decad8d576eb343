"""The time a request has."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic_core import from_json
from starlette.types import Message, Receive, Scope, Send

from service.engine.batcher import Batcher
from service.http.middleware.deadline import MAX_TIMEOUT_MS, DeadlineMiddleware
from tests.service.fake_runtime import FakeRuntime, text, with_batcher


async def late(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Never answers."""
    await asyncio.Event().wait()


async def slow(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Begins at once, and takes longer than its time to finish."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await asyncio.sleep(0.1)
    await send({"type": "http.response.body", "body": b"whole"})


async def in_the_same_moment(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Begins to answer after its time has ended, and before it hears of that."""

    async def answer() -> None:
        time.sleep(0.05)  # noqa: ASYNC251 - so that the end of the time is behind
        await asyncio.sleep(0)  # it ends now
        await asyncio.sleep(0)  # and whoever waits for this task is told next
        await slow(_scope, _receive, send)

    async with asyncio.TaskGroup() as group:
        group.create_task(answer())


async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Fails with an error of its own that is also called a timeout."""
    raise TimeoutError


async def call(app: Any, headers: Sequence[tuple[bytes, bytes]] = (), default_ms: int = 30) -> Any:
    """The messages that come of one request."""
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
def test_who_is_too_late_gets_504(headers: list[tuple[bytes, bytes]], named: int) -> None:
    """After the default, or the time that the caller named."""
    start, body = asyncio.run(call(late, headers))
    assert start["status"] == 504
    assert f"within {named} ms;" in from_json(body["body"])["error"]


def test_an_answer_that_begins_when_the_time_ends_is_too_late() -> None:
    """It is 504 then, and not an error of the service."""
    sent = asyncio.run(call(in_the_same_moment))
    assert [message.get("status") for message in sent] == [504, None]


def test_an_answer_that_has_begun_is_not_cut_off() -> None:
    """The time is for the answer to begin."""
    sent = asyncio.run(call(slow))
    assert sent[-1]["body"] == b"whole"
    assert [message["type"] for message in sent].count("http.response.start") == 1


@pytest.mark.parametrize(
    "value", [b"", b"0", b"-1", b"1.5", b"soon", b"%d" % (MAX_TIMEOUT_MS + 1), b"9" * 5000, b"\xb2"]
)
def test_a_time_that_is_none_is_refused(value: bytes) -> None:
    """The error says what is allowed."""
    start, body = asyncio.run(call(late, [(b"x-request-timeout-ms", value)]))
    assert start["status"] == 400
    expected = "X-Request-Timeout-Ms must be a whole number from 1 to 600000."
    assert from_json(body["body"]) == {"error": expected}


def test_another_timeout_is_another_error() -> None:
    """It is not taken for the request's."""
    with pytest.raises(TimeoutError):
        asyncio.run(call(broken, default_ms=1000))


def test_what_is_too_late_is_not_computed() -> None:
    """Its texts leave the queue, and its tokens are free for others."""
    fake = FakeRuntime()

    async def scenario(batcher: Batcher) -> None:
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

    with_batcher(fake, scenario, max_waiting_tokens=10)
    assert fake.seen == [1, 3]
