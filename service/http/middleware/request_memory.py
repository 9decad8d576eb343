"""ASGI middleware: the memory that requests take with their bodies and answers is bounded."""

from collections.abc import Awaitable, Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import OverloadedError, quote
from service.http.json_size import MAX_VALUES
from service.http.memory_budget import Claim, MemoryBudget
from service.http.responses import send_error, send_error_message
from service.http.throttle import ExcludedRequests
from service.observability.request_context import RESERVE

# Parsing a body of this size takes 0.03 ms, or 0.6 ms if it was made to take long; going to another
# thread and back takes 0.03 ms.
LONG_BODY_BYTES = 2**14
# a longer one may have texts that are tokenized on a thread, after shorter ones
_SHORT_BODY_BYTES = 1_000
# of a JSON value that is read: a short text and the references to it
_VALUE_BYTES = 70
_NOT_ENCODED = frozenset({b"", b"identity"})


class RequestMemoryMiddleware:
    """Bounds each body, all bodies together, and all answers together.

    A body above its limit is answered 413: if its Content-Length says so, without reading it, and
    otherwise as soon as it has grown beyond. A compressed body is refused with 415, for its size
    is not what is announced. The application receives the whole body in one message.

    An endpoint takes what its answer will hold, before it submits anything to the model, by the
    function that the scope has as RESERVE.

    Args:
        app: the application.
        max_body_bytes: the limit of each body.
        bodies: the budget of all; each body counts until its request is answered.
        answers: the budget of all; each counts until it has been made.
        excluded_requests: told of requests that wait for their clients, have joined the model's
            queue, or are answered.
    """

    def __init__(
        self,
        app: ASGIApp,
        max_body_bytes: int,
        bodies: MemoryBudget,
        answers: MemoryBudget,
        excluded_requests: ExcludedRequests,
    ) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._bodies = bodies
        self._answers = answers
        self._excluded_requests = excluded_requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        rejection = self._head_rejection(scope["headers"])
        if rejection is not None:
            await send_error_message(send, *rejection)
            return
        exclude = self._excluded_requests.exclude
        body_message: Message | None = None
        body_claim, answer_claim = self._bodies.claim(), self._answers.claim()

        async def replay() -> Message:
            nonlocal body_message
            if body_message is None:
                return await receive()
            message, body_message = body_message, None
            return message

        def reserve(memory_bytes: int) -> None:
            answer_claim.add(memory_bytes)
            exclude(scope)

        def send_and_release(message: Message) -> Awaitable[None]:
            exclude(scope)  # the client may not read
            if message["type"] == "http.response.body":
                answer_claim.release()  # the connection bounds what clients do not read
            return send(message)

        try:
            exclude(scope)
            body_message = await self._collect(receive, send, body_claim)
            if body_message is None:
                return
            if len(body_message["body"]) < _SHORT_BODY_BYTES:
                self._excluded_requests.include(scope)
            scope[RESERVE] = reserve
            await self._app(scope, replay, send_and_release)
        finally:
            scope.pop(RESERVE, None)  # a cycle would keep the request until the next collection
            self._excluded_requests.include(scope)
            answer_claim.release()
            body_claim.release()

    def _head_rejection(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        """Status and sentence for a head that announces what is not read."""
        for name, value in headers:
            if name == b"content-length":
                if _declared_bytes(value) > self._max_body_bytes:
                    return self._too_large()
            elif name == b"content-encoding" and value.strip(b" \t").lower() not in _NOT_ENCODED:
                encoding = quote(bytes(value).decode("latin-1"))
                return 415, f"The content encoding {encoding} is not read; send plain JSON."
        return None

    def _too_large(self) -> tuple[int, str]:
        limit = f"at most {self._max_body_bytes} bytes are allowed"
        return 413, f"The body is too large; {limit}."

    async def _collect(self, receive: Receive, send: Send, claim: Claim) -> Message | None:
        """The body in one message; None when it is refused or the caller is gone."""
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        try:
            if message.get("more_body"):
                body = await self._collect_parts(message["body"], receive, claim)
                if body is None:
                    return None
                message = {"type": "http.request", "body": body, "more_body": False}
            else:
                claim.add(len(message["body"]))
            claim.add(_parsed_bytes(message["body"]))
        except OverloadedError as error:
            await send_error(send, error)
            return None
        if len(message["body"]) > self._max_body_bytes:
            await send_error_message(send, *self._too_large())
            return None
        return message

    async def _collect_parts(self, first: bytes, receive: Receive, claim: Claim) -> bytes | None:
        """The body or its too large beginning; None when the caller is gone."""
        chunks = [first]
        claim.grow(chunks.clear)
        claim.add(size_bytes := len(first))
        more = True
        while more and size_bytes <= self._max_body_bytes:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            chunk = message.get("body", b"")
            claim.add(len(chunk))
            chunks.append(chunk)
            size_bytes += len(chunk)
            more = message.get("more_body", False)
        claim.settle()
        return b"".join(chunks)


def _declared_bytes(content_length: bytes) -> int:
    digits = content_length.lstrip(b"0") if content_length.isdigit() else b""
    # int() takes no more than 4,300 digits, and 18 are more than any limit
    return int(digits[:19] or b"0")


def _parsed_bytes(body: bytes) -> int:
    """Memory of what is read in a body, at most: its texts may have four bytes a character."""
    wide = not body.isascii() or rb"\u" in body
    return len(body) * (4 if wide else 1) + _VALUE_BYTES * min(body.count(b","), MAX_VALUES)
