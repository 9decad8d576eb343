"""uvicorn's server with a graceful shutdown and a check of slow clients."""

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn

from service.http.connection import Connection
from service.observability.health import Health

_SO_ATTACH_FILTER = 26
# A program of the Berkeley Packet Filter (McCanne and Jacobson 1993), which Linux runs on what
# comes to a socket: drop segments that have SYN and not ACK, let all others pass.
_LOAD_BYTE, _AND, _JUMP_IF_EQUAL, _RETURN = 0x30, 0x54, 0x15, 0x06
_FLAGS, _SYN, _SYN_AND_ACK = 13, 0x02, 0x12  # of the segment's head the byte with its flags
_PROGRAM = (
    (_LOAD_BYTE, 0, 0, _FLAGS),
    (_AND, 0, 0, _SYN_AND_ACK),
    (_JUMP_IF_EQUAL, 0, 1, _SYN),
    (_RETURN, 0, 0, 0),
    (_RETURN, 0, 0, 0xFFFFFFFF),
)


def drop_new_connections(listener: socket.socket) -> None:
    """Let nobody new connect, while those who have begun to still can.

    A listening socket that is closed resets the connections that nobody has accepted yet, and with
    them requests that may be there already. Who comes now is not answered, tries again a second
    later, and is told that nobody listens. Where there is no such filter, nothing is done.
    """
    if sys.platform != "linux":
        return
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in _PROGRAM)
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HL", len(_PROGRAM), ctypes.addressof(held))
    try:
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
    except OSError:  # a sandbox may not have it
        return


SIGNALS = (signal.SIGINT, signal.SIGTERM)
# after the grace is over, for what does not end though it was told to
_FORCED_EXIT_AFTER_S = 5
_LAST_REQUESTS_S = 0.2
_CLOSE = (b"connection", b"close")
_TICKS_PER_CHECK = 10  # of 0.1 s

_log = logging.getLogger(__name__)


class Server(uvicorn.Server):
    """uvicorn, with an end in steps.

    After a signal the service is not ready any more, and goes on for the drain delay, so that those
    who send it requests may hear of that; each connection is closed behind its next answer. Then it
    stops listening, what was accepted has the grace to be finished, and whatever hangs after that
    is ended. A second signal ends the process at once. So does a failure of the service.

    Args:
        config: uvicorn's; its timeout_graceful_shutdown is the grace, in seconds.
        health: of the service.
        drain_delay_s: between the signal and the end of listening.
        started: called with the address, once the service listens.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        health: Health,
        drain_delay_s: float,
        started: Callable[[str], None],
    ) -> None:
        super().__init__(config)
        self._health = health
        self._drain_delay_s = drain_delay_s
        self._started = started
        self._signal_s: float | None = None
        self._draining = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        for listener in (sockets or [])[:1]:  # another one is for metrics
            host, port = listener.getsockname()[:2]
            self._started(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let nobody else connect, serve who has, and end."""
        for listener in sockets or []:
            drop_new_connections(listener)
        # who has connected last may not have been accepted, nor its request have come
        await asyncio.sleep(_LAST_REQUESTS_S)
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take the signals; uvicorn's own raises them again at the end, and the process dies."""
        for number in SIGNALS:
            signal.signal(number, self.handle_exit)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature of handlers
        """A signal has come."""
        if self._signal_s is not None:
            os._exit(128 + sig)
        self._signal_s = time.monotonic()
        self._health.stop("The service is shutting down.")

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: look after the connections, and whether it is time to end."""
        if self._signal_s is not None and not self._draining:
            self._drain()
        if self._signal_s is not None:
            self.should_exit |= time.monotonic() - self._signal_s >= self._drain_delay_s
        self.should_exit |= self._health.failed
        if counter % _TICKS_PER_CHECK == 0:
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.check_timeouts()
        return await super().on_tick(counter)

    def _drain(self) -> None:
        self._draining = True
        # of each answer: those of the next second, and of this one
        self.config.encoded_headers.append(_CLOSE)
        self.server_state.default_headers.append(_CLOSE)
        limit_s = (
            self._drain_delay_s
            + (self.config.timeout_graceful_shutdown or 0)
            + _FORCED_EXIT_AFTER_S
        )
        forced_exit = threading.Timer(limit_s, _force_exit)
        forced_exit.daemon = True
        forced_exit.start()


def _force_exit() -> None:
    _log.critical("the process has not ended in its time, and is ended")
    os._exit(1)
