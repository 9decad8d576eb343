"""One request and its response as ASGI messages, based on uvicorn's implementation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Protocol, cast

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.server import ServerState

from fillmask.http.request_parser import RequestHead, RequestParser
from fillmask.http.unsent_responses import Reader, UnsentResponses

# Size of one chunk of a large response. A chunk waits until the client has read the chunk before.
CHUNK_BYTES = 64 * 1024
_log = logging.getLogger("uvicorn.error")


class Client(Reader, Protocol):
    """Interface of a connection that sends the response."""

    def hold_head(self) -> None:
        """Delay the next write, a response head, until the following write."""

    def write(self, data: bytes) -> None:
        """Send a part of the response."""

    def close(self) -> None:
        """Close the connection so that the client can still read all written bytes."""

    def is_closing(self) -> bool:
        """Return whether the connection is closing."""

    def on_response_complete(self) -> None:
        """Start the next request."""


class PipelineFlowControl(FlowControl):
    """Flow control that stops reading while the parser holds bytes of pipelined requests."""

    def __init__(self, transport: asyncio.Transport, parser: RequestParser) -> None:
        super().__init__(transport)
        self._parser = parser

    def resume_reading(self) -> None:
        """Resume reading unless the parser holds bytes of later requests."""
        if self.read_paused and not self._parser.held:
            super().resume_reading()


class Exchange(RequestResponseCycle):
    """A request and its response, with large responses in chunks.

    Args:
        client: connection of the client.
        state: state of uvicorn's server.
        unsent: limit on the unread bytes of large responses.
    """

    def __init__(
        self,
        client: Client,
        flow: FlowControl,
        head: RequestHead,
        scope: dict[str, Any],
        state: ServerState,
        unsent: UnsentResponses,
    ) -> None:
        super().__init__(
            scope=cast("Any", scope),
            transport=cast("asyncio.Transport", client),
            flow=flow,
            logger=_log,
            access_logger=_log,
            access_log=False,
            default_headers=state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=head.expects_continue,
            keep_alive=head.keep_alive,
            on_response=client.on_response_complete,
        )
        self._client = client
        self._unsent = unsent

    def add_body(self, body: bytes) -> None:
        """Buffer a part of the request body for the application."""
        if not self.response_complete:
            self.body += body
            if len(self.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            self.message_event.set()

    def end_body(self) -> None:
        """Mark the request body as complete."""
        if not self.response_complete:
            self.more_body = False
            self.message_event.set()

    def notify_disconnect(self) -> None:
        """Notify the application that the client has disconnected."""
        if not self.response_complete:
            self.disconnected = True
        self.message_event.set()

    # not async, which saves a coroutine per message
    def send(self, message: Any) -> Coroutine[Any, Any, None]:
        """Send an ASGI message of the application."""
        if self.waiting_for_100_continue:
            # a client that receives no 100 may still send its body (RFC 9110, 10.1.1)
            self.keep_alive = False
        if message["type"] == "http.response.start":
            if self.scope["method"] != "HEAD":
                self._client.hold_head()
        elif len(message.get("body", b"")) > CHUNK_BYTES:
            return self._send_in_chunks(message)
        return super().send(message)

    async def _send_in_chunks(self, message: Any) -> None:
        body = message["body"]
        with self._unsent.sending(self._client, len(body)):
            for start in range(0, len(body), CHUNK_BYTES):
                end = start + CHUNK_BYTES
                more = end < len(body) or message.get("more_body", False)
                await super().send(message | {"body": body[start:end], "more_body": more})
                self._unsent.record_progress(self._client)
