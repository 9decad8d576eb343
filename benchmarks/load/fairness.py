"""Latency of single fills with and without a flood of scoring requests.

    .venv-dev/bin/python -m benchmarks.load.fairness [ENVIRONMENT]

ENVIRONMENT is the environment of the service (default: .venv). A client requests one fill after
another. Measurements without and with a flood alternate. In a flood, another process sends 8
concurrent /score requests of 8 texts each.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from itertools import cycle
from pathlib import Path

from benchmarks.comparison.texts import FILE, masked_texts
from benchmarks.running_server import running_server

ROOT = Path(__file__).parents[2]
ROUNDS, SECONDS = 4, 8.0
CLIENTS, TEXTS = 8, 8
HEADERS = {"Content-Type": "application/json"}


def main() -> None:
    """Print the latencies without and with a flood.

    With the argument --flood, the function sends the flood instead.
    """
    if sys.argv[1:2] == ["--flood"]:
        flood(int(sys.argv[2]))
        return
    environment = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".venv"
    with running_server(command=(str(environment / "bin" / "fillmask-serve"),)) as server:
        port = int(server.url.rpartition(":")[2])
        quiet, flooded = [], []
        fills_ms(port, 2.0)
        for _ in range(ROUNDS):
            quiet += fills_ms(port, SECONDS)
            flooded += while_flooded(port)
    print("| | fills | p50 | p99 |\n|---|--:|--:|--:|")
    for name, times in (("alone", quiet), ("under a flood of scores", flooded)):
        print(
            f"| {name} | {len(times)} | {_percentile(times, 50):.1f} ms "
            f"| {_percentile(times, 99):.1f} ms |"
        )
    ratio = _percentile(flooded, 99) / _percentile(quiet, 99)
    print(f"\np99 under the flood / alone: {ratio:.2f}")


def fills_ms(port: int, seconds: float) -> list[float]:
    """Request one fill after another and return the latencies in milliseconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    times: list[float] = []
    end = time.perf_counter() + seconds
    for text in cycle(masked_texts()):
        started = time.perf_counter()
        if started > end:
            return times
        connection.request("POST", "/fill-mask", json.dumps({"inputs": text}), HEADERS)
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise SystemExit(f"the status of a fill must be 200 (got {response.status})")
        times.append(1e3 * (time.perf_counter() - started))
    raise AssertionError


def while_flooded(port: int) -> list[float]:
    """Measure fills while another process floods the service with scoring requests."""
    command = [sys.executable, "-m", "benchmarks.load.fairness", "--flood", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None  # noqa: S101 - stdout is a pipe
        other.stdout.readline()  # the first response has arrived
        times = fills_ms(port, SECONDS)
        if other.poll() is not None:
            raise SystemExit(
                "all /score responses of the flood must have status 200 "
                f"(got exit code {other.returncode} of its process)"
            )
        other.kill()
    return times


def flood(port: int) -> None:
    """Send scoring requests until a signal ends the process."""
    texts = [text for text in FILE.read_text(encoding="utf-8").splitlines() if len(text) < 300]
    parts = [texts[i : i + TEXTS] for i in range(0, len(texts), TEXTS)]

    def ask(first: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for part in cycle([*parts[first:], *parts[:first]]):
            connection.request("POST", "/score", json.dumps({"inputs": part}), HEADERS)
            response = connection.getresponse()
            response.read()
            if response.status != 200:
                os._exit(1)  # ends the process from any thread
            print("scored", flush=True)

    for client in range(CLIENTS):
        threading.Thread(target=ask, args=(client,), daemon=True).start()
    threading.Event().wait()


def _percentile(times: list[float], percent: int) -> float:
    return statistics.quantiles(times, n=100)[percent - 1]


if __name__ == "__main__":
    main()
