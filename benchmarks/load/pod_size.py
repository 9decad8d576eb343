"""Throughput of pods with one and with two CPUs, for docs/deploy.md.

    .venv-dev/bin/python -m benchmarks.load.pod_size

`taskset` binds the service with the built-in model to one or two CPUs. The service then uses as
many threads as a pod with that number of CPUs (`service/fillmask/host.py`). The clients of a closed
loop run on the other CPUs, if any. The script needs Linux and a quiet machine.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from benchmarks import generated_block
from benchmarks.comparison.machine import hardware
from benchmarks.comparison.process import HOST, ServerError, running
from benchmarks.comparison.texts import masked_texts
from benchmarks.load.http_load import REQUESTS
from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask.tokenization.tokenizer import Tokenizer

PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"
NAME = "load/pod_size"
CPUS, CLIENTS = (1, 2), (8, 32)
ROUNDS, SECONDS, WARM_UP_S = 3, 10.0, 3.0
HEAD = (
    "| CPUs | clients | requests/s | tokens/s | p50 ms | p99 ms | peak memory MB |\n"
    "| --: | --: | --: | --: | --: | --: | --: |"
)


@dataclass(frozen=True, slots=True)
class Load:
    """Throughput and latencies that the clients measured."""

    requests_per_s: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class PodSize:
    """Row of the table for a number of CPUs and a number of clients."""

    cpus: int
    clients: int
    requests_per_s: float
    tokens_per_s: float
    p50_ms: float
    p99_ms: float
    peak_mb: float

    def __str__(self) -> str:
        """Format the row."""
        return (
            f"| {self.cpus} | {self.clients} | {self.requests_per_s:.0f} | {self.tokens_per_s:.0f} "
            f"| {self.p50_ms:.1f} | {self.p99_ms:.1f} | {self.peak_mb:.0f} |"
        )


def main() -> None:
    """Print the measurements and write them to docs/deploy.md."""
    sizes = [size for cpus in CPUS for size in measure(cpus)]
    table = "\n".join([HEAD, *map(str, sizes)])
    print(table)
    usable = sorted(os.sched_getaffinity(0))
    machine = hardware(usable[: max(CPUS)], usable[max(CPUS) :] or usable)
    generated_block.write(PAGE, NAME, f"{table}\n\n- {'; '.join(machine)}")


def read_sizes() -> list[PodSize]:
    """Read the rows of the table in docs/deploy.md."""
    table = generated_block.read(PAGE, NAME).split("\n\n")[0]
    rows = table.strip().splitlines()[2:]
    cells = [[float(cell) for cell in row.strip("|").split("|")] for row in rows]
    return [PodSize(int(row[0]), int(row[1]), *row[2:]) for row in cells]


def tokens_per_request() -> float:
    """Return the mean number of tokens per text, special tokens included."""
    tokenizer = Tokenizer.from_bundle(read_bundle(default_bundle_path()))
    return statistics.mean(len(tokenizer.encode(text).input_ids) for text in masked_texts())


def measure(cpus: int) -> list[PodSize]:
    """Measure a pod with each number of clients.

    The figures are medians over the rounds.
    """
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < cpus:
        raise SystemExit(f"the measurement needs {cpus} CPUs (got {len(usable)})")
    tokens = tokens_per_request()
    sizes = []
    command = [sys.executable, "-m", "fillmask"]
    with running(command, usable[:cpus], "/health/ready", f"pod-{cpus}") as server:
        os.sched_setaffinity(0, usable[cpus:] or usable)
        try:
            for clients in CLIENTS:
                asyncio.run(load(server.port, clients, WARM_UP_S))
                rounds = [asyncio.run(load(server.port, clients, SECONDS)) for _ in range(ROUNDS)]
                rate = statistics.median(each.requests_per_s for each in rounds)
                size = PodSize(
                    cpus=cpus,
                    clients=clients,
                    requests_per_s=rate,
                    tokens_per_s=rate * tokens,
                    p50_ms=statistics.median(each.p50_ms for each in rounds),
                    p99_ms=statistics.median(each.p99_ms for each in rounds),
                    peak_mb=server.peak_rss_bytes() / 1e6,
                )
                sizes.append(size)
        finally:
            os.sched_setaffinity(0, usable)
    return sizes


async def load(port: int, clients: int, seconds: float) -> Load:
    """Load a server with clients that send the next request after each response.

    Raises:
        ServerError: a response has a status other than 200.
    """
    started = time.perf_counter()
    shares = [
        [*REQUESTS[i % len(REQUESTS) :], *REQUESTS[: i % len(REQUESTS)]]
        for i in range(0, clients * 7, 7)
    ]
    asked = [_ask(port, share, started + seconds) for share in shares]
    latencies_s = [each for client in await asyncio.gather(*asked) for each in client]
    percentiles = statistics.quantiles(latencies_s, n=100)
    elapsed_s = time.perf_counter() - started
    return Load(len(latencies_s) / elapsed_s, 1e3 * percentiles[49], 1e3 * percentiles[98])


async def _ask(port: int, requests: Sequence[bytes], end_s: float) -> list[float]:
    """Send requests on one connection until a given time.

    Returns:
        The latency of each request in seconds.
    """
    reader, writer = await asyncio.open_connection(HOST, port)
    latencies_s = []
    try:
        for request in cycle(requests):
            started = time.perf_counter()
            if started > end_s:
                break
            writer.write(request)
            answered = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            await reader.readexactly(int(answered.split("content-length: ")[1].split("\r\n")[0]))
            if not answered.startswith("http/1.1 200 "):
                raise ServerError(f"the status must be 200 (got {answered.splitlines()[0]})")
            latencies_s.append(time.perf_counter() - started)
    finally:
        writer.close()
        await writer.wait_closed()
    return latencies_s


if __name__ == "__main__":
    main()
