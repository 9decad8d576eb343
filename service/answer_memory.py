"""ASGI middleware: the memory of all answers together is bounded."""

from collections.abc import Awaitable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.byte_budget import ByteBudget
from service.on_the_way import OnTheWay
from service.request_scope import RESERVE


class AnswerMemory:
    """Gives each request what takes the memory for its answer, until the answer is made.

    An endpoint takes what answering will hold before it submits anything to the model.

    Args:
        app: the application.
        answers: the budget of all.
        on_the_way: told of requests that have joined the queue or are answered.
    """

    def __init__(self, app: ASGIApp, answers: ByteBudget, on_the_way: OnTheWay) -> None:
        self._app = app
        self._answers = answers
        self._on_the_way = on_the_way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        with self._answers.claim() as claim:

            def reserve(memory_bytes: int) -> None:
                claim.add(memory_bytes)
                self._on_the_way.leave(scope)

            def send_at_leisure(message: Message) -> Awaitable[None]:
                self._on_the_way.leave(scope)  # the client may not read
                if message["type"] == "http.response.body":
                    claim.release()  # the connection bounds what clients do not read
                return send(message)

            scope[RESERVE] = reserve
            try:
                await self._app(scope, receive, send_at_leisure)
            finally:
                self._on_the_way.come_back(scope)
