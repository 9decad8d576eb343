"""Cancellation of requests that take too long or whose clients disconnect."""

import asyncio
from collections.abc import Awaitable, Iterable, Iterator
from contextlib import contextmanager

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fillmask.errors import DeadlineError, MalformedRequestError, SlowRequestError, quote
from fillmask.middleware.transfer import PART_BYTES, ClientDisconnectedError
from fillmask.observability.request_context import DEADLINE

HEADER = b"x-request-timeout-ms"
# ten minutes, longer than any client waits
MAX_TIMEOUT_MS = 600_000
RECEIVE_TIMEOUT_S = 30  # for the body of a request
SEND_TIMEOUT_S = 60  # for a large response
_TOLERANCE_S = 1
# Time until a task starts to watch the client. A faster response needs only a timer, which costs
# 1 us of CPU time. The task costs about 3 us more.
WATCH_AFTER_S = 0.1


class DeadlineMiddleware:
    """Middleware that cancels a request, with its work in the queue, at its deadline.

    The header X-Request-Timeout-Ms sets the time limit, which starts when the complete request has
    arrived. A body has RECEIVE_TIMEOUT_S to arrive. A large response that starts before the
    deadline has SEND_TIMEOUT_S to leave.

    Args:
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
        now_s = asyncio.get_running_loop().time
        # a GET request is complete with its head
        arrived = scope["method"] in {"GET", "HEAD"}
        scope[DEADLINE] = now_s() + timeout_ms / 1000
        timeout = asyncio.timeout_at(scope[DEADLINE] if arrived else now_s() + RECEIVE_TIMEOUT_S)

        async def receive_in_time() -> Message:
            nonlocal arrived
            message = await receive()
            if not (arrived or message.get("more_body") or timeout.expired()):
                arrived = True
                scope[DEADLINE] = deadline_s = now_s() + timeout_ms / 1000
                # a new timer takes 5 us, and most bodies arrive with their heads
                if not 0 <= deadline_s - (timeout.when() or 0) < _TOLERANCE_S:
                    timeout.reschedule(deadline_s)
            return message

        def send_in_time(message: Message) -> Awaitable[None]:
            if timeout.expired():
                # not a wait for the cancellation, which the application may have dropped
                raise TimeoutError
            _allow_time_to_leave(message, timeout)
            return send(message)

        try:
            async with timeout:
                await self._app(scope, receive_in_time, send_in_time)
        except Exception:
            # an application may also raise another error than its cancellation at the deadline
            if not timeout.expired():
                raise
        if timeout.expired():
            if not arrived:
                raise SlowRequestError(
                    f"The request must arrive within {RECEIVE_TIMEOUT_S} s; send it faster."
                )
            raise DeadlineError(
                f"The response takes longer than {timeout_ms} ms; allow more time in "
                "X-Request-Timeout-Ms or send fewer texts."
            )

    def _timeout_ms(self, headers: Iterable[tuple[bytes, bytes]]) -> int:
        timeout_ms = self._default_ms
        for name, value in headers:
            if name == HEADER:
                # white space is not part of a value (RFC 9110, 5.5)
                digits = value.strip(b" \t")
                # any number of ten digits is above the maximum
                timeout_ms = int(digits) if digits.isdigit() and len(digits) < 10 else 0
                if not 1 <= timeout_ms <= MAX_TIMEOUT_MS:
                    found = quote(bytes(digits).decode("latin-1"))
                    raise MalformedRequestError(
                        f"X-Request-Timeout-Ms must be a whole number from 1 to {MAX_TIMEOUT_MS} "
                        f"(got {found})."
                    )
        return timeout_ms


def _allow_time_to_leave(message: Message, timeout: asyncio.Timeout) -> None:
    if message["type"] == "http.response.start":
        timeout.reschedule(None)
    elif message.get("more_body") or len(message.get("body", b"")) >= PART_BYTES:
        timeout.reschedule(asyncio.get_running_loop().time() + SEND_TIMEOUT_S)


@contextmanager
def cancel_on_disconnect(receive: Receive) -> Iterator[None]:
    """Cancel the `with` block when the client disconnects.

    Args:
        receive: ASGI receive function of a request, after its complete body.

    Raises:
        ClientDisconnectedError: the block has been cancelled.
    """
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - servers run each request in a task
    loop, cancelling = task.get_loop(), task.cancelling()
    disconnected = False
    watch: asyncio.Task[None] | None = None

    async def watch_client() -> None:
        nonlocal disconnected
        while (await receive())["type"] != "http.disconnect":
            pass
        disconnected = True
        task.cancel()

    def start_watching() -> None:
        nonlocal watch
        watch = loop.create_task(watch_client())

    timer = loop.call_later(WATCH_AFTER_S, start_watching)
    try:
        yield
    finally:
        timer.cancel()
        if watch is not None:
            watch.cancel()
        # a cancellation by the server is not a disconnect, even when both happen
        if disconnected and task.uncancel() <= cancelling:
            raise ClientDisconnectedError
