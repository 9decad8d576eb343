"""The request id, and the answer to what nobody has handled."""

import asyncio
import logging
import re
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.http.middleware.request_id import RequestIdMiddleware

USER_TEXT = "what the user wrote"


def call(app: Any, sent_id: bytes | None = None) -> list[Message]:
    """Send one request through the middleware."""
    headers = [(b"x-request-id", sent_id)] if sent_id is not None else []
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(RequestIdMiddleware(app)({"type": "http", "headers": headers}, receive, send))
    return sent


def id_of(sent: list[Message]) -> str:
    """The X-Request-ID of the answer."""
    [request_id] = [v for k, v in sent[0]["headers"] if k.lower() == b"x-request-id"]
    return bytes(request_id).decode()


async def fine(_scope: Scope, _receive: Receive, send: Send) -> None:
    """An application that answers."""
    await send({"type": "http.response.start", "status": 200, "headers": []})


async def failing(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """An application with a bug that quotes the user."""
    raise RuntimeError(USER_TEXT)


async def failing_late(_scope: Scope, _receive: Receive, send: Send) -> None:
    """An application that fails within its answer."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise RuntimeError(USER_TEXT)


async def cancelled(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """An application that the server gives up on."""
    raise asyncio.CancelledError


def test_a_sane_id_is_kept() -> None:
    """The caller finds its own id on the answer."""
    assert id_of(call(fine, b"Abc-1.2_3")) == "Abc-1.2_3"
    assert id_of(call(fine, b"x" * 64)) == "x" * 64


@pytest.mark.parametrize("sent_id", [None, b"", b"x" * 65, b"a b", b"a\nb", b"<script>", b"\xff"])
def test_any_other_id_is_replaced(sent_id: bytes | None) -> None:
    """What could forge a log line does not get into one."""
    assert re.fullmatch("[0-9a-f]{32}", id_of(call(fine, sent_id)))


def test_two_requests_have_two_ids() -> None:
    """A made id is made anew."""
    assert id_of(call(fine)) != id_of(call(fine))


def test_a_failure_is_answered_and_logged_without_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The answer has the id only; the log has the id, the type and the place."""
    with caplog.at_level(logging.ERROR):
        sent = call(failing, b"the-id")
    assert sent[0]["status"] == 500
    assert id_of(sent) == "the-id"
    assert b"the request id the-id " in sent[1]["body"]
    assert "the-id" in caplog.text
    assert "RuntimeError" in caplog.text
    assert "in failing" in caplog.text
    assert USER_TEXT not in caplog.text


def test_a_failure_within_an_answer_does_not_begin_another() -> None:
    """A second status line would be taken for the answer's content."""
    assert [message["type"] for message in call(failing_late)] == ["http.response.start"]


def test_a_request_that_outlives_the_grace_of_a_shutdown_is_answered() -> None:
    """Accepted work is answered or failed with a reason."""
    sent = call(cancelled)
    assert sent[0]["status"] == 503
    assert b"shut down before the response was ready" in sent[1]["body"]


def test_other_connections_pass() -> None:
    """The lifespan has no request id."""
    passed = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        passed.append(scope["type"])

    async def nothing(*_: object) -> Any:
        return None

    asyncio.run(RequestIdMiddleware(app)({"type": "lifespan"}, nothing, nothing))
    assert passed == ["lifespan"]
