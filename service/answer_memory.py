"""ASGI middleware: the memory of all answers together is bounded."""

from starlette.types import ASGIApp, Receive, Scope, Send

from service.byte_budget import ByteBudget
from service.request_scope import ANSWER


class AnswerMemory:
    """Gives each request a claim, and takes it back once the answer is sent.

    An endpoint adds to the claim what answering will hold, before anything is computed.

    Args:
        app: the application.
        answers: the budget of all.
    """

    def __init__(self, app: ASGIApp, answers: ByteBudget) -> None:
        self._app = app
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        with self._answers.claim() as claim:
            scope[ANSWER] = claim
            await self._app(scope, receive, send)
