"""Bodies in the log, where somebody has asked for them."""

import asyncio
import logging

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.body_log import MAX_CHARS, BodyLog


def heard(body: bytes) -> bytes:
    """Send one body through the middleware; what the application gets of it."""
    received = []

    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        received.append((await receive())["body"])
        assert (await receive())["type"] == "http.disconnect"

    sent: list[Message] = [{"type": "http.request", "body": body}, {"type": "http.disconnect"}]
    messages = iter(sent)

    async def receive() -> Message:
        return next(messages)

    async def send(_message: Message) -> None:
        pass

    asyncio.run(BodyLog(app)({"type": "http"}, receive, send))
    return bytes(received[0])


def test_a_body_is_logged_and_passed_on(caplog: pytest.LogCaptureFixture) -> None:
    """At the level debug, with its size; bytes that are no text are marked."""
    with caplog.at_level(logging.DEBUG):
        assert heard(b"caf\xc3\xa9 \xff") == b"caf\xc3\xa9 \xff"
    [record] = [record for record in caplog.records if record.name == "service.body_log"]
    assert vars(record)["body"] == "café �"
    assert vars(record)["body_bytes"] == 7
    assert record.levelno == logging.DEBUG


def test_a_long_body_is_cut_in_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    """The log says how long it was."""
    with caplog.at_level(logging.DEBUG):
        assert heard(b"x" * 50_000) == b"x" * 50_000
    [record] = [record for record in caplog.records if record.name == "service.body_log"]
    assert vars(record)["body"] == "x" * MAX_CHARS
    assert vars(record)["body_bytes"] == 50_000
