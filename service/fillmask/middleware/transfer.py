"""ASGI middleware that bounds the bytes of request bodies and responses."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Self

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask.errors import OverloadedError, TooLargeError
from fillmask.observability.request_context import CLAIM

# Part of a response that waits for its client. The server holds at most this and 64 KiB more.
PART_BYTES = 2**14
# A server that closes at once resets a connection with unread bytes, and the reset may overtake the
# response (RFC 9112, 9.6). So the middleware discards the rest of a body for a moment, unless it
# arrives in tiny chunks, which take long to parse.
LINGER_S = 1
LINGER_BYTES = 2**23
_SMALL_BYTES = 2**14
_CLOSE = (b"connection", b"close")
RETRY_AFTER_S = 1


class MemoryBudget:
    """Memory budget in bytes, shared by the requests of one event loop.

    Args:
        max_bytes: limit on the counted bytes of all claims together.
        free_bytes: number of uncounted bytes at the start of each claim, so that the budget never
            rejects short requests. The number of open connections bounds their sum.

    Attributes:
        held_bytes: counted bytes of the current claims.
        taken_bytes: bytes of all claims and large responses so far, including released claims.
    """

    def __init__(self, max_bytes: int, free_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.free_bytes = free_bytes
        self.held_bytes = self.taken_bytes = 0

    def claim(self) -> "Claim":
        return Claim(self)


class Claim:
    """Bytes of a budget that one request uses for its body and its response."""

    __slots__ = ("_budget", "_counted_bytes", "_size_bytes")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._size_bytes = self._counted_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._budget.held_bytes -= self._counted_bytes

    def add(self, size_bytes: int) -> None:
        """Claim more bytes. Rejected bytes do not count.

        Raises:
            OverloadedError: the budget has too few free bytes.
        """
        size_bytes += self._size_bytes
        more_bytes = max(0, size_bytes - self._budget.free_bytes - self._counted_bytes)
        if more_bytes and self._budget.held_bytes + more_bytes > self._budget.max_bytes:
            raise OverloadedError(
                "The memory for request bodies and responses is full; try again in "
                f"{RETRY_AFTER_S} s.",
                RETRY_AFTER_S,
            )
        self._size_bytes = size_bytes
        self._counted_bytes += more_bytes
        self._budget.held_bytes += more_bytes
        self._budget.taken_bytes += more_bytes

    def record_sent(self, size_bytes: int) -> None:
        """Record bytes of a response outside the budget, such as those of a static file."""
        self._budget.taken_bytes += size_bytes


class ClientDisconnectedError(Exception):
    """Error for a client that disconnects before its response is ready."""


class TransferMiddleware:
    """Middleware that bounds the bytes of every body and of all bodies and responses together.

    A body above the limit raises TooLargeError as soon as its Content-Length or its bytes show it.
    A response that leaves its request's body unread closes the connection, and so does every
    response of a stopping service. Large responses leave in parts, so that the memory of a response
    counts until its client has read most of it.

    Args:
        app: next ASGI application, for which scope[CLAIM] is the claim on the budget.
        max_body_bytes: maximum size of each body, in bytes.
        is_stopping: function that returns whether the service no longer keeps connections open.
    """

    def __init__(
        self,
        app: ASGIApp,
        max_body_bytes: int,
        budget: MemoryBudget,
        is_stopping: Callable[[], bool],
    ) -> None:
        self._app = app
        self._budget = budget
        self.max_body_bytes = max_body_bytes
        self.is_stopping = is_stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._budget.claim() as claim, suppress(ClientDisconnectedError):
            scope[CLAIM] = claim
            transfer = _Transfer(self, scope["headers"], receive, send, claim)
            await self._app(scope, transfer.receive, transfer.send)


class _Transfer:
    """The body and the response of one request."""

    def __init__(
        self,
        limits: TransferMiddleware,
        headers: Iterable[tuple[bytes, bytes]],
        receive: Receive,
        send: Send,
        claim: Claim,
    ) -> None:
        self._limits = limits
        self._receive = receive
        self._send = send
        self._claim = claim
        self._declared = self._received = 0
        chunked = False
        for name, value in headers:
            if name == b"content-length":
                self._declared = int(value)  # the server has checked the digits
            elif name == b"transfer-encoding":
                chunked = True
        self._unread = chunked or self._declared > 0

    async def receive(self) -> Message:
        """Return the next message, or raise a TooLargeError or an OverloadedError (`Claim.add`)."""
        self._check_size(self._declared)
        message = await self._receive()
        if message["type"] == "http.request":
            self._unread = message.get("more_body", False)
            size_bytes = len(message.get("body", b""))
            self._received += size_bytes
            self._check_size(self._received)
            self._claim.add(size_bytes)
        return message

    def send(self, message: Message) -> Awaitable[None]:
        """Send a part of the response, in smaller parts if it is large."""
        if message["type"] == "http.response.start":
            if self._unread or self._limits.is_stopping():
                message = {**message, "headers": [*message.get("headers", ()), _CLOSE]}
        elif self._unread or len(message.get("body", b"")) >= PART_BYTES:
            return self._send_in_parts(message["body"], more=message.get("more_body", False))
        return self._try_send(message)

    async def _try_send(self, message: Message) -> None:
        try:
            await self._send(message)
        except Exception as error:  # the server's own, such as h11's after invalid bytes
            raise ClientDisconnectedError from error

    async def _send_in_parts(self, body: bytes, *, more: bool) -> None:
        self._claim.record_sent(len(body))
        message: Message = {"type": "http.response.body", "more_body": True}
        for start in range(0, len(body), PART_BYTES):
            await self._try_send({**message, "body": body[start : start + PART_BYTES]})
        if more:
            return
        if self._unread:
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER_S):
                    await self._discard_body()
        await self._try_send({"type": "http.response.body", "body": b""})

    async def _discard_body(self) -> None:
        left = LINGER_BYTES
        while left > 0:
            message = await self._receive()
            size_bytes = len(message.get("body", b""))
            if not message.get("more_body") or (size_bytes < _SMALL_BYTES and not self._declared):
                return
            left -= size_bytes

    def _check_size(self, size_bytes: int) -> None:
        most_bytes = self._limits.max_body_bytes
        if size_bytes > most_bytes:
            raise TooLargeError(
                f"The body must have at most {most_bytes} bytes (got {size_bytes}); send fewer or "
                "shorter texts, or raise FILLMASK_MAX_BODY_BYTES."
            )
