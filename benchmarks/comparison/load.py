"""Load generator with wrk in a closed loop, which also measures wrk's CPU time."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.comparison.process import HOST, ServerError, on_cpus
from benchmarks.comparison.results import Cell

SCRIPT = Path(__file__).parent / "load.lua"
TIMEOUT_S = 60


def check_wrk() -> None:
    """Exit if wrk is not installed."""
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed. Run: apt-get install wrk")


def load(
    port: int,
    bodies: Path,
    *,
    concurrency: int,
    seconds: float,
    first: int,
    cpus: Sequence[int],
) -> Cell:
    """Load a server in a closed loop.

    Args:
        port: port of the server on this machine.
        bodies: file with one request body per line.
        concurrency: number of connections. Each connection sends its next request after a response.
        seconds: duration of at least 1 s, rounded to whole seconds for wrk.
        first: index of the first body to send.
        cpus: CPUs of wrk.

    Raises:
        ServerError: a response has a status other than 200, or no response arrives.
    """
    command = [
        *("wrk", "--threads", "1", "--connections", str(concurrency)),
        *("--duration", f"{round(seconds)}s", "--timeout", f"{TIMEOUT_S}s"),
        *("--script", str(SCRIPT), f"http://{HOST}:{port}", "--", str(bodies), str(first)),
    ]
    before_s = _children_cpu_s()
    done = subprocess.run(on_cpus(command, cpus), capture_output=True, text=True, check=False)
    # a child process counts only after its end, so the difference is the CPU time of wrk
    cpu_s = _children_cpu_s() - before_s
    results = [line for line in done.stdout.splitlines() if line.startswith("result ")]
    if not results:
        raise ServerError(f"wrk must print a line that begins with result (got {done.stdout!r})")
    result = json.loads(results[-1].removeprefix("result "))
    errors = {k: result[k] for k in ("bad_status", "connect", "read", "write", "timeout")}
    if any(errors.values()) or not result["requests"]:
        raise ServerError(
            f"all requests must be answered with status 200 (got {result['requests']} responses "
            f"and the errors {errors})"
        )
    return Cell(
        requests=result["requests"],
        requests_per_s=result["requests"] / (result["duration_us"] / 1e6),
        p50_ms=result["p50_us"] / 1e3,
        p99_ms=result["p99_us"] / 1e3,
        client_cpu_us=cpu_s / result["requests"] * 1e6,
    )


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
