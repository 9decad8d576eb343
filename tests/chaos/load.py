"""Clients that send requests continuously and record every outcome."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.chaos.requests import HOST, post, read_response

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

    def __init__(self, port: int, outcome: Outcome, body: bytes = BODY) -> None:
        self._port = port
        self._outcome = outcome
        self._request = post("/fill-mask", body)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self) -> bool:
        """Send one request and return whether the service accepted the connection."""
        if self._streams is None:
            try:
                self._streams = await asyncio.open_connection(HOST, self._port)
            except OSError:
                self._outcome.refused += 1
                return False
        reader, writer = self._streams
        started_s = time.perf_counter()
        try:
            async with asyncio.timeout(PATIENCE_S):
                writer.write(self._request)
                head, content = await read_response(reader)
        except (OSError, EOFError, TimeoutError):
            self._outcome.lost += 1
            self.close()
            return True
        status = int(head.split(b" ", 2)[1])
        self._outcome.statuses[status] += 1
        if status == 200:
            self._outcome.latencies_s.append(time.perf_counter() - started_s)
        elif not (content.startswith(b'{"error":"') and content.endswith(b'"}')):
            self._outcome.bad += 1
        if b"connection: close" in head:
            self.close()
        return True

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


@asynccontextmanager
async def asking(port: int, clients: int, pause_s: float = 0.0) -> AsyncIterator[Outcome]:
    """Send requests during the block, and yield their outcome, which is complete after it.

    Args:
        clients: number of clients, each of which waits for a response before its next request.
        pause_s: seconds between a response and the next request.
    """
    stop, outcome = asyncio.Event(), Outcome()

    async def run() -> None:
        client = Client(port, outcome)
        while not stop.is_set():
            if not await client.ask():
                await asyncio.sleep(0.01)
            elif pause_s:
                await asyncio.sleep(pause_s)
        client.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(run())
        try:
            yield outcome
        finally:
            stop.set()
