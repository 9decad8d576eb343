"""One request and its response, from the client's side of an ASGI server such as uvicorn."""

import asyncio
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from starlette.types import Message, Scope

from tests.simulation.clients.questions import Question

if TYPE_CHECKING:
    from tests.simulation.machine.loop import VirtualLoop

_LARGE_BYTES = 2**14


@dataclass(frozen=True, slots=True)
class Client:
    """How a client behaves.

    Attributes:
        timeout_ms: value of X-Request-Timeout-Ms, or None for none.
        body_s: seconds between the parts of the body.
        parts: number of parts of the body.
        leaves_after_s: seconds after which the client disconnects, or None for never.
        reads_s: seconds that each large part of the response takes to leave.
        breaks: True if the server's send fails, as after invalid bytes.
    """

    timeout_ms: int | None = None
    body_s: float = 0.0
    parts: int = 1
    leaves_after_s: float | None = None
    reads_s: float = 0.0
    breaks: bool = False


class Exchange:
    """A request on its way through the application.

    Attributes:
        begun_s: virtual time of the head of the request.
        arrived_s: virtual time of the last part of its body, or None before it.
        started_s: virtual time of the start of the response, or None before it.
        gone: whether the client has disconnected.
        answered: whether the client has the whole response.
        complete: whether the server has also ended it.
        alone: whether no other request has been in progress since the head.
    """

    def __init__(
        self, loop: "VirtualLoop", number: int, question: Question, client: Client
    ) -> None:
        self._loop = loop
        self.number = number
        self.question = question
        self.client = client
        self.begun_s = loop.now_s
        self.begun_frozen_s = loop.frozen_s
        self.arrived_s: float | None = None
        self.started_s: float | None = None
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.body = b""
        self.gone = self.complete = self.answered = False
        self.alone = False
        self.versions_before = 0
        self._left_parts = client.parts
        self._ended = loop.create_future()
        if client.leaves_after_s is not None:
            loop.call_later(client.leaves_after_s, self.disconnect)

    def scope(self) -> Scope:
        """Return the ASGI scope of the request."""
        question = self.question
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(question.body)),
            (b"x-request-id", b"%d" % self.number),
        ]
        if self.client.timeout_ms is not None:
            headers.append((b"x-request-timeout-ms", b"%d" % self.client.timeout_ms))
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": question.method,
            "scheme": "http",
            "path": question.path,
            "raw_path": question.path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": headers if question.method == "POST" else headers[2:],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
            "state": {},
        }

    def disconnect(self) -> None:
        """Close the connection from the client's side."""
        if not self.complete:
            self.gone = True
        if not self._ended.done():
            self._ended.set_result(None)

    async def receive(self) -> Message:
        """Return the next part of the body, and then the disconnect."""
        if self._left_parts and self.client.body_s:
            await asyncio.wait([self._ended], timeout=self.client.body_s)
        if self._left_parts and not self.gone:
            body, parts = self.question.body, self.client.parts
            size = -(-len(body) // parts)
            start = (parts - self._left_parts) * size
            self._left_parts -= 1
            if not self._left_parts:
                self.arrived_s = self._loop.now_s
            return {
                "type": "http.request",
                "body": body[start : start + size],
                "more_body": self._left_parts > 0,
            }
        if not self.complete:
            await asyncio.wait([self._ended])
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take a part of the response, as uvicorn does, and check their order."""
        if self.gone:
            return
        if self.client.breaks:
            raise RuntimeError("the connection is broken")
        if message["type"] == "http.response.start":
            if self.status:
                self._loop.violate(f"Request {self.number} gets two responses.")
            self.status = message["status"]
            self.headers = dict(message["headers"])
            self.started_s = self._loop.now_s
            return
        if self.complete or not self.status:
            self._loop.violate(f"Request {self.number} gets a body outside of its response.")
        part = message.get("body", b"")
        self.body += part
        if len(part) >= _LARGE_BYTES and self.client.reads_s:
            await asyncio.sleep(self.client.reads_s)
        expected_bytes = int(self.headers.get(b"content-length", len(self.body)))
        ends = not message.get("more_body", False)
        if len(self.body) > expected_bytes or (ends and len(self.body) < expected_bytes):
            self._loop.violate(f"Request {self.number} gets a body of another length.")
        self.answered = len(self.body) == expected_bytes
        if ends:
            self.complete = True
            if not self._ended.done():
                self._ended.set_result(None)


def describe(exchange: Exchange) -> str:
    """Return one line about an exchange, for the trace."""
    habits = {name: value for name, value in asdict(exchange.client).items() if value}
    return f"request {exchange.number} {exchange.question.label} {habits}"
