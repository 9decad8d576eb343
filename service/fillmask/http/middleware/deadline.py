"""ASGI middleware that bounds the time of a request, from its head to the end of its response."""

import asyncio
from collections.abc import Awaitable, Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask.errors import DeadlineError, MalformedRequestError, SlowRequestError, quote
from fillmask.http.middleware.transfer import PART_BYTES
from fillmask.observability.request_context import DEADLINE

HEADER = b"x-request-timeout-ms"
# ten minutes, longer than any client waits
MAX_TIMEOUT_MS = 600_000
RECEIVE_TIMEOUT_S = 30  # for the body of a request
SEND_TIMEOUT_S = 60  # for a large response
_TOLERANCE_S = 1


class DeadlineMiddleware:
    """Middleware that cancels a request at its deadline.

    The cancellation removes the request's work from the queue. The header X-Request-Timeout-Ms sets
    the time limit, which starts when the complete request has arrived. A body has RECEIVE_TIMEOUT_S
    to arrive. A large response that starts before the deadline has SEND_TIMEOUT_S to leave.

    Args:
        app: next ASGI application.
        default_ms: time limit of requests without the header, in milliseconds.
    """

    def __init__(self, app: ASGIApp, default_ms: int) -> None:
        self._app = app
        self._default_ms = default_ms

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request within its time limit.

        Raises:
            MalformedRequestError: the header is invalid.
            SlowRequestError: the body has not arrived in time.
            DeadlineError: the response has not started, or not left, in time.
        """
        timeout_ms = self._timeout_ms(scope["headers"])
        # a GET request is complete with its head
        arrived = scope["method"] in {"GET", "HEAD"}
        first_s = timeout_ms / 1000 if arrived else RECEIVE_TIMEOUT_S
        now_s = asyncio.get_running_loop().time()
        timeout = asyncio.timeout_at(now_s + first_s)
        scope[DEADLINE] = now_s + timeout_ms / 1000
        timed = _TimedRequest(scope, receive, send, timeout, timeout_ms / 1000, arrived=arrived)
        try:
            async with timeout:
                await self._app(scope, timed.receive, timed.send)
        except Exception:
            # an application may also raise another error than its cancellation at the deadline
            if not timeout.expired():
                raise
        if timeout.expired():
            raise _late(timeout_ms) if timed.arrived else _slow()

    def _timeout_ms(self, headers: Iterable[tuple[bytes, bytes]]) -> int:
        timeout_ms = self._default_ms
        for name, value in headers:
            if name == HEADER:
                # white space is not part of a value (RFC 9110, 5.5)
                digits = value.strip(b" \t")
                # any number of ten digits is above the maximum
                timeout_ms = int(digits) if digits.isdigit() and len(digits) < 10 else 0
                if not 1 <= timeout_ms <= MAX_TIMEOUT_MS:
                    allowed = f"a whole number from 1 to {MAX_TIMEOUT_MS}"
                    found = quote(bytes(digits).decode("latin-1"))
                    raise MalformedRequestError(
                        f"X-Request-Timeout-Ms must be {allowed} (got {found})."
                    )
        return timeout_ms


class _TimedRequest:
    """The messages of one request, which move its deadline.

    Attributes:
        arrived: whether the complete request has arrived.
    """

    __slots__ = ("_limit_s", "_receive", "_scope", "_send", "_timeout", "arrived")

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        timeout: asyncio.Timeout,
        limit_s: float,
        *,
        arrived: bool,
    ) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._timeout = timeout
        self._limit_s = limit_s
        self.arrived = arrived

    async def receive(self) -> Message:
        """Return the next message. The time limit starts with the last part of the body."""
        message = await self._receive()
        if not (self.arrived or message.get("more_body") or self._timeout.expired()):
            self.arrived = True
            deadline_s = asyncio.get_running_loop().time() + self._limit_s
            self._scope[DEADLINE] = deadline_s
            # a new timer takes 5 us, and most bodies arrive with their heads
            if not 0 <= deadline_s - (self._timeout.when() or 0) < _TOLERANCE_S:
                self._timeout.reschedule(deadline_s)
        return message

    def send(self, message: Message) -> Awaitable[None]:
        """Send a part of the response, unless the deadline has passed."""
        if self._timeout.expired():
            # not a wait for the cancellation, which the application may have dropped
            raise TimeoutError
        if message["type"] == "http.response.start":
            self._timeout.reschedule(None)
        elif message.get("more_body") or len(message.get("body", b"")) >= PART_BYTES:
            self._timeout.reschedule(asyncio.get_running_loop().time() + SEND_TIMEOUT_S)
        return self._send(message)


def _late(timeout_ms: int) -> DeadlineError:
    advice = "allow more time in X-Request-Timeout-Ms or send fewer texts"
    return DeadlineError(f"The response takes longer than {timeout_ms} ms; {advice}.")


def _slow() -> SlowRequestError:
    return SlowRequestError(
        f"The request must arrive within {RECEIVE_TIMEOUT_S} s; send it faster."
    )
