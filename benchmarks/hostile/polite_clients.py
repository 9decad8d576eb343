"""Polite clients and probes of a service under attack, in a separate process.

    .venv-dev/bin/python -m benchmarks.hostile.polite_clients PORT METRICS_PORT SECONDS KEY

One client sends short fills over one connection, another opens a connection per fill. Two probes
ask for liveness on the main port and, unless METRICS_PORT is 0, on the metrics port. The process
prints a list of `Asked` in JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import NamedTuple

from benchmarks.hostile.requests import HOST, Streams

EVERY_S = 0.05
PROBED_EVERY_S = 0.2
PATIENCE_S = 10.0
LOST = 0  # status of a request without a complete response
BODY = b'{"inputs": "Paris is the [MASK] of France."}'
LIVE = b"GET /health/live HTTP/1.1\r\nHost: fillmask\r\nConnection: close\r\n\r\n"


class Asked(NamedTuple):
    """One request.

    Attributes:
        client: "keep-alive", "new", "live" or "metrics port".
        started_s: start on the monotonic clock, which all processes share.
        took_s: seconds until the response or the loss, including a new connection.
        status: status of the response, or LOST.
        retried: whether the server had closed the idle connection before it got the request.
    """

    client: str
    started_s: float
    took_s: float
    status: int
    retried: bool = False


def fill(key: str, *, close: bool) -> bytes:
    """Return a request to fill a short text."""
    head = (
        "POST /fill-mask HTTP/1.1\r\nHost: fillmask\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {key}\r\nContent-Length: {len(BODY)}\r\n"
    )
    return (head + ("Connection: close\r\n\r\n" if close else "\r\n")).encode() + BODY


class Client:
    """Client that sends one request again and again.

    Args:
        client: name of the client.
        keep_alive: whether the client uses one connection as long as the server keeps it open.
    """

    def __init__(self, client: str, port: int, request: bytes, *, keep_alive: bool) -> None:
        self._client = client
        self._port = port
        self._request = request
        self._keep_alive = keep_alive
        self._streams: Streams | None = None

    async def ask(self) -> Asked:
        """Send one request and wait for the response."""
        started_s, retried, status = time.monotonic(), False, LOST
        try:
            async with asyncio.timeout(PATIENCE_S):
                used = self._streams is not None
                try:
                    status = await self._exchange()
                except _ClosedIdleError:
                    retried = used
                    status = await self._exchange() if used else LOST
        except (OSError, EOFError, TimeoutError):
            self._close()
        return Asked(self._client, started_s, time.monotonic() - started_s, status, retried)

    async def _exchange(self) -> int:
        if self._streams is None or self._streams[0].at_eof():
            self._close()
            self._streams = await asyncio.open_connection(HOST, self._port)
        reader, writer = self._streams
        try:
            writer.write(self._request)
            first = await reader.readexactly(1)
        except (OSError, EOFError):
            self._close()
            raise _ClosedIdleError from None
        head = (first + await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
        if not self._keep_alive or b"connection: close" in head:
            self._close()
        return int(head.split(b" ", 2)[1])

    def _close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


class _ClosedIdleError(ConnectionError):
    """Error for a connection that the server has closed without any byte of a response."""


async def ask_all(port: int, metrics_port: int, seconds: float, key: str) -> list[Asked]:
    """Ask with all clients for some seconds and return all requests."""
    asked: list[Asked] = []
    end_s = time.monotonic() + seconds

    async def run(client: Client, every_s: float) -> None:
        while (now_s := time.monotonic()) < end_s:
            asked.append(await client.ask())
            await asyncio.sleep(now_s + every_s - time.monotonic())

    async with asyncio.TaskGroup() as group:
        kept = Client("keep-alive", port, fill(key, close=False), keep_alive=True)
        group.create_task(run(kept, EVERY_S))
        fresh = Client("new", port, fill(key, close=True), keep_alive=False)
        group.create_task(run(fresh, EVERY_S))
        live = Client("live", port, LIVE, keep_alive=False)
        group.create_task(run(live, PROBED_EVERY_S))
        if metrics_port:
            live = Client("metrics port", metrics_port, LIVE, keep_alive=False)
            group.create_task(run(live, PROBED_EVERY_S))
    return asked


async def polite(port: int, metrics_port: int, seconds: float, key: str) -> list[Asked]:
    """Ask with all clients in a separate process and return all requests."""
    arguments = map(str, (port, metrics_port, seconds, key))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "benchmarks.hostile.polite_clients",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await process.communicate()
    return [Asked(*one) for one in json.loads(printed)]


if __name__ == "__main__":
    _, port_, metrics_port_, seconds_, key_ = sys.argv
    everything = ask_all(int(port_), int(metrics_port_), float(seconds_), key_)
    print(json.dumps(asyncio.run(everything)))
