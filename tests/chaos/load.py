"""Clients that send requests continuously and record every outcome."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field

from tests.chaos.requests import post

BODY = json.dumps({"inputs": "Paris is the [MASK] of France, on the river Seine."}).encode()
PATIENCE_S = 40.0


@dataclass
class Outcome:
    """Outcomes of requests.

    Attributes:
        statuses: number of responses by status.
        lost: number of requests on an open connection without a complete response.
        refused: number of failed attempts to connect.
        latencies_s: seconds from sending to the last byte, for the responses with status 200.
        bad: number of error responses without a message in JSON.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    lost: int = 0
    refused: int = 0
    latencies_s: list[float] = field(default_factory=list)
    bad: int = 0

    def percentile_s(self, share: float) -> float:
        """Return a percentile of the latencies in seconds, or 0 without latencies."""
        ranked = sorted(self.latencies_s)
        return ranked[min(len(ranked) - 1, int(share * len(ranked)))] if ranked else 0.0


class Client:
    """Client with one HTTP connection.

    The client reconnects after the server has closed the connection.
    """

    def __init__(self, host: str, port: int, outcome: Outcome, body: bytes = BODY) -> None:
        self._address = host, port
        self._outcome = outcome
        self._request = post("/fill-mask", body)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self) -> bool:
        """Send one request and return whether the service accepted the connection."""
        if self._streams is None:
            try:
                self._streams = await asyncio.open_connection(*self._address)
            except OSError:
                self._outcome.refused += 1
                return False
        reader, writer = self._streams
        started_s = time.perf_counter()
        try:
            async with asyncio.timeout(PATIENCE_S):
                writer.write(self._request)
                status, closing = await self._read(reader)
        except (OSError, EOFError, TimeoutError):
            self._outcome.lost += 1
            self.close()
            return True
        self._outcome.statuses[status] += 1
        if status == 200:
            self._outcome.latencies_s.append(time.perf_counter() - started_s)
        if closing:
            self.close()
        return True

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None

    async def _read(self, reader: asyncio.StreamReader) -> tuple[int, bool]:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        content = await reader.readexactly(length)
        status = int(head.split(b" ", 2)[1])
        if status != 200 and not (content.startswith(b'{"error":"') and content.endswith(b'"}')):
            self._outcome.bad += 1
        return status, b"connection: close" in head


async def ask_until(
    stop: asyncio.Event, host: str, port: int, clients: int, pause_s: float = 0.0
) -> Outcome:
    """Send requests from clients that each wait for a response before the next request.

    Args:
        stop: event that ends the requests.
        pause_s: seconds between a response and the next request.
    """
    outcome = Outcome()

    async def run() -> None:
        client = Client(host, port, outcome)
        while not stop.is_set():
            if not await client.ask():
                await asyncio.sleep(0.01)
            elif pause_s:
                await asyncio.sleep(pause_s)
        client.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(run())
    return outcome
