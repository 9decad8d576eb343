"""HTTP connection for uvicorn, with timeouts for slow and silent clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import unquote

import uvicorn
from uvicorn.protocols.utils import get_local_addr, get_remote_addr
from uvicorn.server import ServerState

from fillmask.http import client_timeouts
from fillmask.http.client_timeouts import ClientTimeouts
from fillmask.http.early_responses import error_response, overloaded_response, too_many_connections
from fillmask.http.exchange import Exchange, PipelineFlowControl
from fillmask.http.request_parser import HttpError, RequestHead, RequestParser
from fillmask.http.throttle import LoopThrottle
from fillmask.http.unsent_responses import UnsentResponses
from fillmask.observability.statistics import ProcessStatistics

READ_BYTES = 16 * 1024  # per read, which also bounds the held bytes of pipelined requests
# The system accepts a short response in one write. More bytes stay unsent only for slow clients.
_UNSENT_BYTES = 16 * 1024
# A client that has closed its writing side may still read. If the client has disconnected, its
# system resets the connection after the first write. The second write detects the reset.
_DISCONNECT_CHECK_S = 0.1
_DISCONNECT_CHECKS = 2
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
# time before the close, because an immediate reset may discard a response (RFC 9112, 9.6)
_LINGER_S = 2
_NEXT_WRITE = b"the next write is a response head"

# All connections share the buffer, because they copy the received bytes before the next read.
_buffer = memoryview(bytearray(READ_BYTES))


class Connection(asyncio.BufferedProtocol):
    """HTTP connection that passes one request at a time to the application.

    During an overload, the connection itself rejects requests for fills and labels after reading
    them. A rejection by the application needs a task and several times as much CPU time, which
    delays other requests.

    Args:
        max_connections: number of connections above which a new connection gets a 429 response.
        statistics: counters of open and rejected connections.
        throttle: throttle of the event loop. A new connection cancels the scheduled pause.
        unsent: limit on the unread bytes of large responses over all connections.
        check_overload: function of the path of a POST request and the number of open requests. The
            function returns the seconds for Retry-After, or None to accept the request.
        server_state: connections, tasks and default headers of uvicorn's server.
        app_state: state of the ASGI lifespan.
    """

    def __init__(
        self,
        *,
        max_connections: int,
        statistics: ProcessStatistics,
        throttle: LoopThrottle,
        unsent: UnsentResponses,
        check_overload: Callable[[str, int], int | None],
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._app: Any = config.loaded_app
        self._loop = _loop or asyncio.get_running_loop()
        self._asgi = {"version": config.asgi_version, "spec_version": "2.3"}
        self._server_state = server_state
        self._app_state = app_state
        self._max_connections = max_connections
        self._statistics = statistics
        self._throttle = throttle
        self._unsent = unsent
        self._check_overload = check_overload
        self._parser = RequestParser(self)
        self._exchange: Exchange | None = None
        self._rejected: tuple[RequestHead, int] | None = None
        self._head: bytes | None = None  # response head that waits for its body
        self._half_closed = False
        self._lingers = False
        self._timeouts = ClientTimeouts(config.timeout_keep_alive, self._loop.time())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count a new connection and reject it above the limit."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(_UNSENT_BYTES)
        self._flow = PipelineFlowControl(self._transport, self._parser)
        self._server = get_local_addr(self._transport)
        self._client = get_remote_addr(self._transport)
        self._server_state.connections.add(cast("Any", self))
        self._statistics.open_connections += 1
        self._throttle.record_connection()
        if len(self._server_state.connections) > self._max_connections:
            self._statistics.rejected_connections["connections"] += 1
            self._app = too_many_connections

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Notify the application that its client has disconnected."""
        self._server_state.connections.discard(cast("Any", self))
        self._statistics.open_connections -= 1
        if self._exchange is not None:
            self._exchange.notify_disconnect()
        self._flow.resume_writing()
        # breaks a cycle that keeps received bytes until the next garbage collection
        self._exchange = None
        self._parser.close()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        """Return the buffer that the event loop reads into."""
        return _buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Parse the bytes that the event loop has read."""
        if not self.is_closing():
            self._parse(bytes(_buffer[:nbytes]))

    def eof_received(self) -> bool:
        """Keep the connection open for the response to a complete request."""
        self._half_closed = True
        if self.is_closing() or not self._parser.complete:
            return False
        self._loop.call_later(_DISCONNECT_CHECK_S, self._check_disconnected, _DISCONNECT_CHECKS)
        return True

    def pause_writing(self) -> None:
        """Stop the application from sending until the client reads again."""
        self._flow.pause_writing()

    def resume_writing(self) -> None:
        """Let the application send again."""
        self._flow.resume_writing()

    def shutdown(self) -> None:
        """Close the connection after the pending response."""
        if self._busy and self._exchange is not None:
            self._exchange.keep_alive = False
        else:
            self._transport.close()

    def hold_head(self) -> None:
        """Delay the next write, a response head, until the first part of the body."""
        self._head = _NEXT_WRITE

    def write(self, data: bytes) -> None:
        """Send a part of a response, unless the connection is closing."""
        if self._head is _NEXT_WRITE:
            self._head = data
            return
        if self._head is not None:
            data = self._head + data
            self._head = None
        if not self.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """Close the connection so that the client can still read all written bytes."""
        if self.is_closing():
            return
        if self._half_closed or (self._parser.complete and not self._parser.held):
            self._transport.close()
        else:
            self._lingers = True
            self._flow.resume_reading()
            self._transport.write_eof()
            self._loop.call_later(_LINGER_S, self._transport.close)

    def is_closing(self) -> bool:
        """Return whether the connection is closing and ignores further requests."""
        return self._lingers or self._transport.is_closing()

    def abort_slow_client(self) -> None:
        """Abort the connection and discard the unread bytes."""
        self._statistics.rejected_connections["slow_client"] += 1
        self._transport.abort()

    def check_timeouts(self) -> None:
        """Close the connection after a timeout. The server calls this method once per second."""
        now_s = self._loop.time()
        self._timeouts.record_unread(self._transport.get_write_buffer_size(), now_s)
        expired = self._timeouts.expired(now_s)
        if expired == "response":
            self.abort_slow_client()
        elif expired == "keep-alive" and not self.is_closing():
            self._transport.close()
        elif expired == "request" and not self.is_closing():
            timeout_s = client_timeouts.REQUEST_TIMEOUT_S
            message = f"The request must arrive within {timeout_s} s; send it faster."
            self._reject(408, "slow_client", message)

    def on_request(self, head: RequestHead) -> None:
        """Pass a request with a complete head to the application or reject the request."""
        path, _, query = head.target.partition(b"?")
        text = path.decode("ascii")
        self._exchange = None
        if head.method == b"POST" and not head.expects_continue:
            retry_after_s = self._check_overload(text, len(self._server_state.tasks))
            if retry_after_s is not None:
                self._rejected = head, retry_after_s
                return
        scope = {
            "type": "http",
            "asgi": self._asgi,
            "http_version": head.http_version,
            "server": self._server,
            "client": self._client,
            "scheme": "http",
            "root_path": "",
            "headers": head.headers,
            "state": self._app_state.copy(),
            "method": head.method.decode("ascii"),
            "path": unquote(text) if "%" in text else text,
            "raw_path": path,
            "query_string": query,
        }
        self._exchange = Exchange(self, self._flow, head, scope, self._server_state, self._unsent)
        task = self._loop.create_task(self._exchange.run_asgi(self._app))
        task.add_done_callback(self._server_state.tasks.discard)
        self._server_state.tasks.add(task)

    def on_body(self, body: bytes) -> None:
        """Pass a part of the body to the application."""
        if self._exchange is not None:
            self._exchange.add_body(body)

    def on_request_end(self) -> None:
        """Complete the current request after its last byte."""
        if self._exchange is not None:
            self._exchange.end_body()
        elif self._rejected is not None:
            self._send_overloaded(*self._rejected)
            self._rejected = None
        # the next request may start before `_parse` records the end of this request
        if not self._busy:
            self._record_request()

    def on_response_complete(self) -> None:
        """Start the next request after a complete response."""
        self._server_state.total_requests += 1
        if not self.is_closing():
            self._parse(b"")

    @property
    def _busy(self) -> bool:
        if self._exchange is not None:
            return not self._exchange.response_complete
        return self._rejected is not None

    def _parse(self, data: bytes) -> None:
        """Parse new bytes, then held bytes while no request is pending."""
        try:
            if data:
                self._parser.feed(data)
            while self._parser.complete and not self._busy and not self.is_closing():
                self._exchange = None
                self._parser.next_request()
        except HttpError as error:
            reason = "large_head" if error.status in {414, 431} else "not_http"
            self._reject(error.status, reason, error.message)
            return
        self._record_request()
        if self._half_closed and not self._parser.complete:
            self._transport.close()
        elif self._parser.held:
            self._flow.pause_reading()
        else:
            self._flow.resume_reading()

    def _record_request(self) -> None:
        parser, now_s = self._parser, self._loop.time()
        self._timeouts.record_request(begun=parser.begun, complete=parser.complete, now_s=now_s)

    def _check_disconnected(self, checks: int) -> None:
        """Detect the disconnect of a client with a half-closed connection by interim responses."""
        exchange = self._exchange
        if self.is_closing() or exchange is None or exchange.response_started:
            return
        if exchange.scope["http_version"] != "1.0":
            self._transport.write(_CONTINUE)
        if checks > 1:
            self._loop.call_later(_DISCONNECT_CHECK_S, self._check_disconnected, checks - 1)

    def _send_overloaded(self, head: RequestHead, retry_after_s: int) -> None:
        headers = self._server_state.default_headers
        self._transport.write(overloaded_response(head, retry_after_s, headers))
        self._server_state.total_requests += 1
        if not head.keep_alive:
            self.close()

    def _reject(self, status: int, reason: str, message: str) -> None:
        """Close the connection, with an error response unless another response has started."""
        self._statistics.rejected_connections[reason] += 1
        if self._exchange is None or not self._exchange.response_started:
            headers = self._server_state.default_headers
            self._transport.write(error_response(status, message, headers))
        self.close()
