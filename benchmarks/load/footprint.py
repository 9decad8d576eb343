"""Size on disk, start time and memory of the service.

    .venv-dev/bin/python benchmarks/load/footprint.py [ENVIRONMENT]

ENVIRONMENT is the serving environment (default: .venv, which `make serve` creates). The script
starts the service three times. It sends 500 requests after each start. A request has 1 to 8 texts
of 3 to 199 words each. The script needs Linux.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.running_server import running_server

ROOT = Path(__file__).parents[2]
STARTS = 3
REQUESTS = 500
WORDS = ["the", "old", "river", "runs", "past", "a", "small", "town", "where", "people", "sell"]


@dataclass(frozen=True, slots=True)
class Footprint:
    """Start time and memory of the service."""

    ready_s: float
    idle_mb: float
    peak_mb: float


def main() -> None:
    """Print sizes, start time and memory."""
    environment = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".venv"
    bundle = ROOT / "service" / "fillmask" / "bundles" / "default"
    starts = [measure(environment / "bin" / "fillmask-serve", bundle) for _ in range(STARTS)]
    print(f"serving environment   {_size_mb(environment):7.1f} MB")
    print(f"built-in bundle       {_size_mb(bundle):7.1f} MB")
    print(f"start to ready        {statistics.median(s.ready_s for s in starts):7.2f} s")
    print(f"memory when ready     {statistics.median(s.idle_mb for s in starts):7.1f} MB")
    print(f"peak, {REQUESTS} requests    {statistics.median(s.peak_mb for s in starts):7.1f} MB")


def measure(program: Path, bundle: Path, mask_token: str = "[MASK]") -> Footprint:  # noqa: S107 - not a password
    """Measure one start of the service and its memory after requests."""
    started = time.perf_counter()
    with running_server("--bundle", str(bundle), command=(str(program),)) as server:
        _get(f"{server.url}/health/ready")
        ready_s = time.perf_counter() - started
        idle_mb = _memory_mb(server.process.pid, "VmRSS")
        _load(f"{server.url}/fill-mask", mask_token)
        peak_mb = _memory_mb(server.process.pid, "VmHWM")
    return Footprint(ready_s, idle_mb, peak_mb)


def _load(url: str, mask_token: str) -> None:
    generator = np.random.default_rng(0)
    for _ in range(REQUESTS):
        texts = []
        for length in generator.integers(3, 200, generator.integers(1, 9)):
            words = generator.choice(WORDS, length).tolist()
            words[generator.integers(length)] = mask_token
            texts.append(" ".join(words))
        body = json.dumps({"inputs": texts}).encode()
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as response:  # noqa: S310 - our own server
            response.read()


def _get(url: str) -> None:
    with urllib.request.urlopen(url) as response:  # noqa: S310 - our own server
        response.read()


def _memory_mb(pid: int, field: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"{field}:\s+(\d+) kB", status)
    if found is None:
        raise SystemExit(f"/proc/{pid}/status must contain {field}; run this on Linux")
    return int(found[1]) * 1024 / 1e6


def _size_mb(directory: Path) -> float:
    return sum(f.stat().st_size for f in directory.rglob("*") if not f.is_symlink()) / 1e6


if __name__ == "__main__":
    main()
