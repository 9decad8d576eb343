"""ASGI middleware that limits the memory of request bodies and responses."""

from collections.abc import Awaitable, Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask.errors import OverloadedError, quote
from fillmask.http.json_size import MAX_VALUES
from fillmask.http.memory_budget import Claim, MemoryBudget
from fillmask.http.send_json import send_error, send_error_message
from fillmask.http.throttle import ExcludedRequests
from fillmask.observability.request_context import RESERVE

# Parsing a body of this size takes 0.03 ms, or 0.6 ms for a malicious body. Switching
# to another thread and back takes 0.03 ms.
LONG_BODY_BYTES = 2**14
# a request with a longer body may wait for a thread that tokenizes its texts
_SHORT_BODY_BYTES = 1_000
# memory of one parsed JSON value, which is a short text and the references to the text
_VALUE_BYTES = 70
_NOT_ENCODED = frozenset({b"", b"identity"})


class RequestMemoryMiddleware:
    """Middleware that limits the size of each body and the memory of all bodies and responses.

    The middleware responds with 413 as soon as the Content-Length or the received bytes of a body
    exceed the limit. The middleware responds to a compressed body with 415, because its size in
    memory is unknown. The application receives the complete body in one message.

    Endpoints reserve the memory of their response with the function scope[RESERVE], before they
    submit work to the model.

    Args:
        app: next ASGI application.
        max_body_bytes: maximum size of each body, in bytes.
        bodies: budget of all bodies. A body counts until the end of its request.
        responses: budget of all responses. A response counts until the connection receives it.
        excluded_requests: count of requests that the overload check excludes.
    """

    def __init__(
        self,
        app: ASGIApp,
        max_body_bytes: int,
        bodies: MemoryBudget,
        responses: MemoryBudget,
        excluded_requests: ExcludedRequests,
    ) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._bodies = bodies
        self._responses = responses
        self._excluded_requests = excluded_requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request within the limits."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        rejection = self._head_rejection(scope["headers"])
        if rejection is not None:
            await send_error_message(send, *rejection)
            return
        exclude = self._excluded_requests.exclude
        body_message: Message | None = None
        body_claim, response_claim = self._bodies.claim(), self._responses.claim()

        async def receive_body() -> Message:
            nonlocal body_message
            if body_message is None:
                return await receive()
            message, body_message = body_message, None
            return message

        def reserve(memory_bytes: int) -> None:
            response_claim.add(memory_bytes)
            exclude(scope)

        def send_and_release(message: Message) -> Awaitable[None]:
            exclude(scope)  # the client may stop reading
            if message["type"] == "http.response.body":
                response_claim.release()  # the connection limits unread bytes
            return send(message)

        try:
            exclude(scope)
            body_message = await self._collect(receive, send, body_claim)
            if body_message is None:
                return
            if len(body_message["body"]) < _SHORT_BODY_BYTES:
                self._excluded_requests.include(scope)
            scope[RESERVE] = reserve
            await self._app(scope, receive_body, send_and_release)
        finally:
            # breaks a cycle that keeps the request until the next garbage collection
            scope.pop(RESERVE, None)
            self._excluded_requests.include(scope)
            response_claim.release()
            body_claim.release()

    def _head_rejection(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        """Return the status and message of a rejection, or None for valid headers."""
        for name, value in headers:
            if name == b"content-length":
                if (declared_bytes := _declared_bytes(value)) > self._max_body_bytes:
                    return self._too_large(declared_bytes)
            elif name == b"content-encoding" and value.strip(b" \t").lower() not in _NOT_ENCODED:
                encoding = quote(bytes(value).decode("latin-1"))
                problem = f"The service does not support the content encoding {encoding}"
                return 415, f"{problem}; send plain JSON."
        return None

    def _too_large(self, size_bytes: int) -> tuple[int, str]:
        allowed = f"at most {self._max_body_bytes} bytes (got {size_bytes})"
        return 413, f"The body must have {allowed}; send fewer or shorter texts."

    async def _collect(self, receive: Receive, send: Send, claim: Claim) -> Message | None:
        """Return the body as one message, or None for a rejected or incomplete body."""
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
            await send_error_message(send, *self._too_large(len(message["body"])))
            return None
        return message

    async def _collect_parts(self, first: bytes, receive: Receive, claim: Claim) -> bytes | None:
        """Return the body, the start of a body above the limit, or None for an incomplete body."""
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
    # int() accepts up to 4,300 digits. 19 digits exceed any limit.
    return int(digits[:19] or b"0")


def _parsed_bytes(body: bytes) -> int:
    """Return the maximum bytes of a parsed body, whose texts may take four bytes per character."""
    wide = not body.isascii() or rb"\u" in body
    return len(body) * (4 if wide else 1) + _VALUE_BYTES * min(body.count(b","), MAX_VALUES)
