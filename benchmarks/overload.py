"""Five times as many requests as it can answer, for a minute: what becomes of them.

    .venv-dev/bin/python -m benchmarks.overload [SECONDS [TIMES]]

Capacity is measured first, by clients that ask again as soon as they have their answer. Then as
many times as that are sent by the clock, whatever becomes of those before. Both come from another
process on the same CPUs, so what is measured is less than the service could do alone.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import uvloop

CLIENTS = 64
CAPACITY_S = 10
MOST_CONNECTIONS = 800
BODY = b'{"inputs": "Paris is the [MASK] of France, on the river Seine."}'
REQUEST = (
    b"POST /fill-mask HTTP/1.1\r\nHost: fillmask\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
)


@dataclass
class Result:
    """What became of the requests; times in seconds."""

    statuses: Counter[int] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    failed: int = 0
    without_body: int = 0
    unsent: int = 0

    def percentile_ms(self, share: float) -> float:
        """Of the latencies of those that were answered with fills."""
        ranked = sorted(self.latencies)
        return 1000 * ranked[int(share * (len(ranked) - 1))] if ranked else 0.0


class Wire(asyncio.Protocol):
    """A connection that has one request at a time."""

    def __init__(self, result: Result, free: list[Wire], again: bool) -> None:  # noqa: FBT001 - internal
        self._result = result
        self._free = free
        self._again = again
        self._received = b""
        self._started = 0.0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self._transport = cast("asyncio.Transport", transport)

    def send(self) -> None:
        """Ask."""
        self._received = b""
        self._started = time.perf_counter()
        self._transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        """A piece of the answer, or all of it."""
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
        if self._again:
            self.send()
        else:
            self._free.append(self)

    def connection_lost(self, _error: Exception | None) -> None:
        """Gone; whoever waits on it has failed."""
        self._result.failed += self._started > 0
        if self in self._free:
            self._free.remove(self)


async def closed_loop(port: int, seconds: float) -> Result:
    """Each client asks again as soon as it has its answer."""
    result = Result()
    loop = asyncio.get_running_loop()
    for _ in range(CLIENTS):
        _, wire = await loop.create_connection(
            lambda: Wire(result, [], again=True), "127.0.0.1", port
        )
        wire.send()
    await asyncio.sleep(1)
    result.statuses.clear()
    result.latencies.clear()
    await asyncio.sleep(seconds)
    return Result(result.statuses.copy(), list(result.latencies), result.failed)


async def open_loop(port: int, rate: float, seconds: float) -> Result:
    """By the clock."""
    result, free = Result(), list[Wire]()
    loop = asyncio.get_running_loop()
    opened = 0
    connecting: set[asyncio.Task[None]] = set()

    async def connect() -> None:
        _, wire = await loop.create_connection(
            lambda: Wire(result, free, again=False), "127.0.0.1", port
        )
        wire.send()

    begun, sent = loop.time(), 0
    while (passed := loop.time() - begun) < seconds:
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
        await asyncio.sleep(0.001)
    counted = Result(
        result.statuses.copy(),
        list(result.latencies),
        result.failed,
        result.without_body,
        result.unsent,
    )
    await asyncio.sleep(2)  # what is still on its way does not count as lost
    counted.failed = result.failed
    return counted


def _apart(loop: str, *arguments: float) -> Result:
    """Run a load in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_load, (loop, *arguments))


def _load(loop: str, port: int, *arguments: float) -> Result:
    if loop == "closed":
        return uvloop.run(closed_loop(port, *arguments))
    return uvloop.run(open_loop(port, *arguments))


@contextmanager
def service(*flags: str) -> Iterator[tuple[int, int]]:
    """A service of the built-in model; gives its process id and port."""
    command = [sys.executable, "-m", "service", "--port=0", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            found = re.search(r":(\d+), docs", process.stdout.readline() if process.stdout else "")
            if found is None:
                raise SystemExit("the service did not start")
            yield process.pid, int(found[1])
        finally:
            process.terminate()


def peak_mb(process_id: int) -> int:
    """Most memory so far."""
    status = Path(f"/proc/{process_id}/status").read_text(encoding="ascii")
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) // 1024


async def recover_s(port: int, usual_ms: float) -> float:
    """How long until a request takes no longer than it did before."""
    begun = time.perf_counter()
    while True:
        result = Result()
        _, wire = await asyncio.get_running_loop().create_connection(
            lambda: Wire(result, [], again=False),  # noqa: B023 - connected at once
            "127.0.0.1",
            port,
        )
        wire.send()
        while not result.statuses:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.002)
        if result.statuses[200] and result.latencies[0] * 1000 <= usual_ms:
            return time.perf_counter() - begun


def main() -> None:
    """Print the table."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    times = float(sys.argv[2]) if len(sys.argv) > 2 else 5
    with service() as (process_id, port):
        at_capacity = _apart("closed", port, CAPACITY_S)
        capacity = at_capacity.statuses[200] / CAPACITY_S
        before_mb = peak_mb(process_id)
        usual_ms = at_capacity.percentile_ms(0.99)
        over = _apart("open", port, times * capacity, seconds)
        recovered = uvloop.run(recover_s(port, usual_ms))
        after_mb = peak_mb(process_id)
    goodput = over.statuses[200] / seconds
    others = {status: n for status, n in sorted(over.statuses.items()) if status != 200}
    print("| | requests/s | answered/s | p50 | p99 | peak memory |\n|---|--:|--:|--:|--:|--:|")
    print(
        f"| capacity, {CLIENTS} clients | {capacity:.0f} | {capacity:.0f} "
        f"| {at_capacity.percentile_ms(0.5):.0f} ms | {usual_ms:.0f} ms | {before_mb} MB |"
    )
    print(
        f"| {times:g} times that, {seconds:.0f} s | {times * capacity:.0f} | {goodput:.0f} "
        f"| {over.percentile_ms(0.5):.0f} ms | {over.percentile_ms(0.99):.0f} ms | {after_mb} MB |"
    )
    print(
        f"\nGoodput {100 * goodput / capacity:.0f} % of capacity; p99 "
        f"{over.percentile_ms(0.99) / usual_ms:.2f} times; other answers {others}; without a "
        f"sentence {over.without_body}; connections that broke {over.failed}; not sent for want of "
        f"a connection {over.unsent}; recovered after {recovered:.2f} s."
    )


if __name__ == "__main__":
    main()
