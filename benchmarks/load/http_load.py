"""HTTP clients that load a server in a closed or an open loop.

The clients poll without sleeping, because Linux charges the wake-up of a sleeping CPU to the
server.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from benchmarks.comparison.process import HOST
from benchmarks.comparison.texts import masked_texts, request_body

CLIENTS = 32
WARM_UP_S = 2  # excluded from the figures, because clients still open their connections
MOST_CONNECTIONS = 800


def encode_request(text: str) -> bytes:
    """Return a complete request to fill the masks of a text."""
    body = request_body(text).encode()
    return (
        b"POST /fill-mask HTTP/1.1\r\nHost: fillmask\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )


# complete requests in the order of the texts
REQUESTS = [encode_request(text) for text in masked_texts()]


@dataclass
class Result:
    """Outcome of the requests.

    Attributes:
        statuses: number of responses by status.
        latencies: latencies in seconds of responses with status 200.
        failed: number of requests on lost connections.
        without_body: number of error responses without an error message.
        unsent: number of requests that found no free connection.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    failed: int = 0
    without_body: int = 0
    unsent: int = 0

    def clear(self) -> None:
        """Clear the statuses and the latencies.

        The other counts stay unchanged.
        """
        self.statuses.clear()
        self.latencies.clear()

    def copy(self) -> Result:
        """Return a copy of the current counts."""
        return replace(self, statuses=self.statuses.copy(), latencies=list(self.latencies))

    def percentile_ms(self, share: float) -> float:
        """Return a quantile of the latencies in milliseconds."""
        ranked = sorted(self.latencies)
        return 1000 * ranked[int(share * (len(ranked) - 1))] if ranked else 0.0


class Wire(asyncio.Protocol):
    """Connection with one request at a time.

    Args:
        result: counts to update.
        free: list that receives the connection after each response. None to send the next request
            immediately.
        requests: requests to choose from.
    """

    # random, because a fixed order of texts can synchronise with the batches
    _random = random.Random(0)  # noqa: S311 - a choice, not a secret

    def __init__(
        self, result: Result, free: list[Wire] | None, requests: Sequence[bytes] = REQUESTS
    ) -> None:
        self._result = result
        self._requests = requests
        self._free = free
        self._received = b""
        self._started = 0.0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def send(self) -> None:
        """Send a random request."""
        self._received = b""
        self._started = time.perf_counter()
        self._transport.write(self._random.choice(self._requests))

    def data_received(self, data: bytes) -> None:
        """Collect a response and count it when it is complete."""
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end:
            return
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        if len(body) < length:
            return
        status = int(head[9:12])
        self._result.statuses[status] += 1
        if status == 200:
            self._result.latencies.append(time.perf_counter() - self._started)
        elif not body.startswith(b'{"error":"'):
            self._result.without_body += 1
        self._started = 0.0
        if self._free is None:
            self.send()
        else:
            self._free.append(self)

    def connection_lost(self, _error: Exception | None) -> None:
        """Count a pending request as failed."""
        self._result.failed += self._started > 0
        if self._free and self in self._free:
            self._free.remove(self)


async def _spin(until: Callable[[], bool]) -> None:
    while not until():  # noqa: ASYNC110 - polling is the purpose, because clients must not sleep
        await asyncio.sleep(0)


async def closed_loop(port: int, seconds: float) -> Result:
    """Load a server with clients that send the next request after each response."""
    result = Result()
    loop = asyncio.get_running_loop()
    for _ in range(CLIENTS):
        _, wire = await loop.create_connection(lambda: Wire(result, None), HOST, port)
        wire.send()
    warm = loop.time() + WARM_UP_S
    await _spin(lambda: loop.time() > warm)
    result.clear()
    await _spin(lambda: loop.time() > warm + seconds)
    return result.copy()


async def open_loop(port: int, rate: float, seconds: float) -> Result:
    """Load a server at a fixed request rate, independent of its responses."""
    result, free = Result(), list[Wire]()
    loop = asyncio.get_running_loop()
    connecting: set[asyncio.Task[None]] = set()
    opened = 0

    async def connect() -> None:
        _, wire = await loop.create_connection(lambda: Wire(result, free), HOST, port)
        wire.send()

    begun, sent, warm = loop.time(), 0, False
    while (passed := loop.time() - begun) < WARM_UP_S + seconds:
        if not warm and passed > WARM_UP_S:
            warm = True
            result.clear()
        while sent < passed * rate:
            sent += 1
            if free:
                free.pop().send()
            elif opened < MOST_CONNECTIONS:
                opened += 1
                task = loop.create_task(connect())
                connecting.add(task)
                task.add_done_callback(connecting.discard)
            else:
                result.unsent += 1
        await asyncio.sleep(0)
    counted = result.copy()
    await asyncio.sleep(2)  # of the pending requests, only failures count
    counted.failed = result.failed
    return counted


async def recover_s(port: int, usual_ms: float) -> float:
    """Return the seconds until a request is as fast as before the overload."""
    begun = time.perf_counter()
    result, free = Result(), list[Wire]()
    _, wire = await asyncio.get_running_loop().create_connection(
        lambda: Wire(result, free), HOST, port
    )
    while True:
        result.clear()
        wire.send()
        await _spin(lambda: bool(result.statuses))
        if result.statuses[200] and result.latencies[0] * 1000 <= usual_ms:
            return time.perf_counter() - begun
