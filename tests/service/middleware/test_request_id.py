"""Request id and the response to unhandled exceptions."""

import asyncio
import logging
import re

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask.middleware.responses import RequestIdMiddleware
from tests.service.middleware.asgi import call, fine

USER_TEXT = "what the user wrote"


async def ask(app: ASGIApp, sent_id: bytes | None = None) -> list[Message]:
    """Send one request through the middleware and return the messages of the response."""
    headers = [(b"x-request-id", sent_id)] if sent_id is not None else []
    return await call(RequestIdMiddleware(app), headers=headers)


def id_of(sent: list[Message]) -> str:
    """Return the X-Request-ID of the response."""
    [request_id] = [v for k, v in sent[0]["headers"] if k.lower() == b"x-request-id"]
    return bytes(request_id).decode()


async def failing(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Application whose exception contains text of the request."""
    raise RuntimeError(USER_TEXT)


async def failing_late(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Application that fails after the start of its response."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise RuntimeError(USER_TEXT)


async def cancelled(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Application that the server cancels."""
    raise asyncio.CancelledError


async def test_valid_id_of_the_client_is_kept() -> None:
    assert id_of(await ask(fine, b"Abc-1.2_3")) == "Abc-1.2_3"
    assert id_of(await ask(fine, b"x" * 64)) == "x" * 64


@pytest.mark.parametrize("sent_id", [None, b"", b"x" * 65, b"a\nb", b"<script>"])
async def test_invalid_id_is_replaced(sent_id: bytes | None) -> None:
    # The log never contains an id that could forge a log line.
    first, second = [id_of(await ask(fine, sent_id)) for _ in range(2)]
    assert re.fullmatch("[0-9a-f]{32}", first)
    assert first != second


async def test_exception_is_answered_and_logged_without_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # The response has only the request id. The log also has the exception's type and location.
    with caplog.at_level(logging.ERROR):
        sent = await ask(failing, b"the-id")
    assert sent[0]["status"] == 500
    assert id_of(sent) == "the-id"
    assert b"the request id the-id." in sent[1]["body"]
    assert USER_TEXT.encode() not in sent[1]["body"]
    assert "the-id" in caplog.text
    assert "RuntimeError" in caplog.text
    assert "in failing" in caplog.text
    assert USER_TEXT not in caplog.text


async def test_exception_within_an_answer_does_not_begin_another() -> None:
    # If the server sent a second status line, clients would read it as content.
    assert [message["type"] for message in await ask(failing_late)] == ["http.response.start"]


async def test_request_that_outlives_the_grace_period_is_answered() -> None:
    sent = await ask(cancelled)
    assert sent[0]["status"] == 503
    assert b"because it is shutting down" in sent[1]["body"]
