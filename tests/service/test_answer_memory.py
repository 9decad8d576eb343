"""The memory of all answers, as an ASGI application sees it."""

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.answer_memory import AnswerMemory
from service.byte_budget import ByteBudget
from service.errors import OverloadedError
from service.on_the_way import OnTheWay
from service.request_scope import RESERVE


def test_memory_is_held_until_the_answer_is_made() -> None:
    """The next request finds no room meanwhile; then the connection bounds what is not read."""
    answers, on_the_way = ByteBudget("answers", 100, 0), OnTheWay()
    sent: list[tuple[int, int]] = []

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        scope[RESERVE](60)
        assert on_the_way.elsewhere == 1
        with pytest.raises(OverloadedError):
            scope[RESERVE](50)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"1"})

    async def send(_: Message) -> None:
        sent.append((answers.held_bytes, on_the_way.elsewhere))

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    for _ in range(3):
        asyncio.run(AnswerMemory(app, answers, on_the_way)({"type": "http"}, receive, send))
        assert (answers.held_bytes, on_the_way.elsewhere) == (0, 0)
    assert sent == [(60, 1), (0, 1)] * 3


def test_memory_is_given_back_by_a_request_that_fails() -> None:
    """So is its place among those that are elsewhere."""
    answers, on_the_way = ByteBudget("answers", 100, 0), OnTheWay()

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        scope[RESERVE](60)
        raise ZeroDivisionError

    async def nothing(*_: object) -> Message:
        return {}

    with pytest.raises(ZeroDivisionError):
        asyncio.run(AnswerMemory(app, answers, on_the_way)({"type": "http"}, nothing, nothing))  # type: ignore[arg-type]
    assert (answers.held_bytes, on_the_way.elsewhere) == (0, 0)
