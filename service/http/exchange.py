"""A request and its answer as an ASGI application sees them, around uvicorn's implementation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Protocol, cast

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.server import ServerState

from service.http.request_parser import RequestHead, RequestParser
from service.http.unsent_responses import Reader, UnsentResponses

# an answer is handed on in parts of this size, the next one when the client has read the last
CHUNK_BYTES = 64 * 1024
_log = logging.getLogger("uvicorn.error")


class Client(Reader, Protocol):
    """The connection that an answer goes to."""

    def hold_head(self) -> None:
        """Send the head that is written next together with what follows it."""

    def write(self, data: bytes) -> None:
        """Send a part of an answer."""

    def close(self) -> None:
        """Close the connection once the client has what was written."""

    def is_closing(self) -> bool:
        """Return whether the connection is being closed."""

    def on_response_complete(self) -> None:
        """Go on to the next request."""


class PipelineFlowControl(FlowControl):
    """Flow control that reads nothing more while bytes of later requests wait to be parsed."""

    def __init__(self, transport: asyncio.Transport, parser: RequestParser) -> None:
        super().__init__(transport)
        self._parser = parser

    def resume_reading(self) -> None:
        """Read on, unless what has been read is enough."""
        if self.read_paused and not self._parser.held:
            super().resume_reading()


class Exchange(RequestResponseCycle):
    """Sends long answers in parts, and counts them until the client has read them.

    Args:
        client: the connection.
        flow: of the connection.
        head: of the request.
        scope: the same as ASGI has it.
        state: of the server.
        unsent: counts long answers.
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
        """Hold a part of the request's body for the application."""
        if not self.response_complete:
            self.body += body
            if len(self.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            self.message_event.set()

    def end_body(self) -> None:
        """Note that the body is complete."""
        if not self.response_complete:
            self.more_body = False
            self.message_event.set()

    def notify_disconnect(self) -> None:
        """Tell the application that its client is gone."""
        if not self.response_complete:
            self.disconnected = True
        self.message_event.set()

    def send(self, message: Any) -> Coroutine[Any, Any, None]:  # not async, to spare one
        """Send a message of the application."""
        if self.waiting_for_100_continue:
            # the client may send the body it has announced or not (RFC 9110, 10.1.1)
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
