"""ASGI middleware: a body above the limit is refused before anything parses it."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.byte_budget import ByteBudget, Claim
from service.errors import OverloadedError, quote
from service.headers import header
from service.json_answer import send_error, send_sentence
from service.json_size import MAX_VALUES
from service.on_the_way import OnTheWay

# Parsing a body of this size takes 0.03 ms, or 0.6 ms if it was made to take long; going to another
# thread and back takes 0.03 ms.
LONG_BODY_BYTES = 2**14
# a longer one may have texts that are tokenized on a thread, after shorter ones
_PROMPT_BODY_BYTES = 1_000
# of a JSON value that is read: a short text and the references to it
_VALUE_BYTES = 70


class BodyLimit:
    """Collects a body up to the limit, and answers 413 above it.

    A Content-Length above the limit is refused without reading; a body without one is refused as
    soon as it has grown beyond. A compressed body is refused with 415, for its size is not what is
    announced. What the application receives is the whole body in one message.

    Args:
        app: the application.
        max_body_bytes: the limit.
        bodies: bounds those of all requests together; each counts until its request is answered.
        on_the_way: told of requests whose bodies are still to come.
    """

    def __init__(
        self, app: ASGIApp, max_body_bytes: int, bodies: ByteBudget, on_the_way: OnTheWay
    ) -> None:
        self._app = app
        self._on_the_way = on_the_way
        self._bodies = bodies
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        encoding = header(scope, b"content-encoding") or ""
        if encoding.strip(" \t").lower() not in {"", "identity"}:
            sentence = f"The content encoding {quote(encoding)} is not read; send plain JSON."
            await send_sentence(send, 415, sentence)
            return
        length = header(scope, b"content-length") or ""
        # int() takes no more than 4,300 digits, and none beyond ASCII
        digits = length.lstrip("0") if length.isascii() and length.isdigit() else ""
        if len(digits) > 18 or int(digits or "0") > self._max_body_bytes:
            await self._refuse(send)
            return
        with self._bodies.claim() as claim:
            self._on_the_way.leave(scope)
            try:
                await self._answer(scope, receive, send, claim)
            finally:
                self._on_the_way.come_back(scope)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, claim: Claim) -> None:
        try:
            whole: Message | None = await self._collect(receive, claim)
        except OverloadedError as error:
            await send_error(send, error)
            return
        if whole is None:
            return
        size_bytes = len(whole["body"])
        if size_bytes > self._max_body_bytes:
            await self._refuse(send)
            return
        if size_bytes < _PROMPT_BODY_BYTES:
            self._on_the_way.come_back(scope)

        async def replay() -> Message:
            nonlocal whole
            if whole is None:
                return await receive()
            message, whole = whole, None
            return message

        await self._app(scope, replay, send)

    async def _collect(self, receive: Receive, claim: Claim) -> Message | None:
        """The body in one message, or its too large beginning; None when the caller is gone."""
        chunks: list[bytes] = []
        claim.grow(chunks.clear)
        size_bytes = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            chunk = message.get("body", b"")
            claim.add(len(chunk))
            chunks.append(chunk)
            size_bytes += len(chunk)
            if size_bytes > self._max_body_bytes or not message.get("more_body"):
                body = b"".join(chunks)
                claim.settle()
                claim.add(_parsed_bytes(body))
                return {"type": "http.request", "body": body, "more_body": False}

    async def _refuse(self, send: Send) -> None:
        limit = f"at most {self._max_body_bytes} bytes are allowed"
        await send_sentence(send, 413, f"The body is too large; {limit}.")


def _parsed_bytes(body: bytes) -> int:
    """Memory of what is read in a body, at most: its texts may have four bytes a character."""
    wide = not body.isascii() or rb"\u" in body
    return len(body) * (4 if wide else 1) + _VALUE_BYTES * min(body.count(b","), MAX_VALUES)
