"""A connection to a client that may be slow, silent or greedy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any, Literal, cast

from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from service.breath import Breath
from service.errors import overloaded_text
from service.json_answer import error_json, send_sentence
from service.process_statistics import ProcessStatistics
from service.request_id import request_id_of

MAX_HEAD_BYTES = 32 * 1024
REQUEST_S = 30  # for a request to arrive, from its first byte to its last
ANSWER_S = 60  # for an answer to be taken


class Connection(HttpToolsProtocol):
    """uvicorn's, with limits that it does not have.

    A request for which there is no room is refused here, as soon as it has been read: to make a
    task of it, and have the application say no, costs several times as much, and then of all times
    the time is wanted for those who are in.

    Args:
        max_connections: above it a connection is told so, and closed.
        statistics: told of connections, and of those that are refused.
        breath: told of connections.
        retry_after_s: tells of the path of a POST request, and of the number of requests before it
            that have no answer yet, in how many seconds there should be room, where there is none.
        of_uvicorn: what uvicorn makes its connections with.
    """

    def __init__(
        self,
        *,
        max_connections: int,
        statistics: ProcessStatistics,
        breath: Breath,
        retry_after_s: Callable[[str, int], int | None],
        **of_uvicorn: Any,
    ) -> None:
        super().__init__(**of_uvicorn)
        self._retry_after_s = retry_after_s
        self._breath = breath
        self._refused_s: int | None = None
        self._max_connections = max_connections
        self._statistics = statistics
        # since when a request is awaited of which there is no end yet; None between requests
        self._awaited_since_s: float | None = None
        self._unsent_since_s: float | None = None
        # since when there is nothing to do, if its last request was refused here
        self._idle_since_s: float | None = None
        self._head_bytes = 0
        self._awaited: Literal["request", "rest of the head", "body"] = "request"

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        super().connection_made(transport)
        self._statistics.open_connections += 1
        self._breath.note_connection()
        self._awaited_since_s = self.loop.time()
        if len(self.connections) > self._max_connections:
            self._statistics.refused_connections["connections"] += 1
            self.app = _too_many

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended."""
        self._statistics.open_connections -= 1
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """The client has sent something."""
        if self._awaited != "body" and self._head_bytes + len(data) > MAX_HEAD_BYTES:
            room = max(0, MAX_HEAD_BYTES - self._head_bytes)
            if data.find(b"\r\n\r\n", 0, room) < 0:
                sentence = f"The head of the request is above {MAX_HEAD_BYTES} bytes."
                self._refuse(431, "large_head", sentence)
                return
        super().data_received(data)
        if self._awaited == "rest of the head":
            self._head_bytes += len(data)

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._awaited = "rest of the head"
        self._idle_since_s = None
        if self._awaited_since_s is None:
            self._awaited_since_s = self.loop.time()

    def on_headers_complete(self) -> None:
        """Its head is there."""
        self._awaited = "body"
        if self._has_no_room():
            self.cycle = _DONE
        else:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of it is there."""
        super().on_message_complete()
        self._awaited_since_s = None
        self._head_bytes = 0
        self._awaited = "request"
        if self._refused_s is not None:
            self._say_no(self._refused_s)
            self._refused_s = None

    def check(self) -> None:
        """End the connection if its client is too slow; to be called once in a while."""
        now_s = self.loop.time()
        if not self.transport.get_write_buffer_size():
            self._unsent_since_s = None
        elif self._unsent_since_s is None:
            self._unsent_since_s = now_s
        elif now_s - self._unsent_since_s > ANSWER_S:
            self._statistics.refused_connections["slow_client"] += 1
            self.transport.abort()
            return
        idle_s = self._idle_since_s
        if idle_s is not None and now_s - idle_s > self.timeout_keep_alive:
            self.transport.close()
            return
        awaited_s = self._awaited_since_s
        if awaited_s is not None and now_s - awaited_s > REQUEST_S:
            sentence = f"The request was not there within {REQUEST_S} s."
            self._refuse(408, "slow_client", sentence)

    def _has_no_room(self) -> bool:
        busy = self.cycle is not None and not self.cycle.response_complete
        if busy or self.expect_100_continue or self.parser.get_method() != b"POST":
            return False  # the answer to the one before must come first
        path = self.url.partition(b"?")[0].decode("latin-1")
        self._refused_s = self._retry_after_s(path, len(self.tasks))
        return self._refused_s is not None

    def _say_no(self, retry_after_s: int) -> None:
        keep = self.parser.should_keep_alive()
        own = [*self.server_state.default_headers, (b"x-request-id", request_id_of(self.headers))]
        head = b"".join(b"%b: %b\r\n" % header for header in own)
        close = b"" if keep else b"connection: close\r\n"
        self.transport.write(STATUS_LINE[429] + head + close + _overloaded(retry_after_s))
        if not keep:
            self.transport.close()
        # What uvicorn does after an answer, but for a timer to close the connection one day, which
        # it would make for each: `check` does.
        self.server_state.total_requests += 1
        self._idle_since_s = self.loop.time()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words for it
        """Answer what is no HTTP."""
        self._refuse(400, "not_http", "The request is not valid HTTP.")

    def _refuse(self, status: int, reason: str, sentence: str) -> None:
        if self.transport.is_closing():
            return
        self._statistics.refused_connections[reason] += 1
        body = error_json(sentence)
        head = b"content-type: application/json\r\ncontent-length: %d\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + b"connection: close\r\n\r\n" + body)
        self.transport.close()


@cache
def _overloaded(retry_after_s: int) -> bytes:
    """The answer from its headers that are always the same to its end."""
    body = error_json(overloaded_text(retry_after_s))
    return b"content-type: application/json\r\ncontent-length: %d\r\nretry-after: %d\r\n\r\n%b" % (
        len(body),
        retry_after_s,
        body,
    )


# stands for a request that has its answer
_DONE = cast(
    "RequestResponseCycle",
    SimpleNamespace(response_complete=True, message_event=asyncio.Event()),
)


async def _too_many(_scope: Any, _receive: Any, send: Any) -> None:
    headers = [(b"retry-after", b"1"), (b"connection", b"close")]
    await send_sentence(send, 429, "There are too many connections; try again in 1 s.", headers)
