"""The load generator: wrk in a closed loop, its own CPU time measured."""

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
    """Stop at once where the load generator is missing."""
    if shutil.which("wrk") is None:
        raise SystemExit("the comparison needs wrk: apt-get install wrk")


def load(
    port: int, bodies: Path, *, concurrency: int, seconds: float, first: int, cpus: Sequence[int]
) -> Cell:
    """Keep `concurrency` requests on their way for some seconds.

    Args:
        port: of the server, on this machine.
        bodies: a file with one request body a line.
        concurrency: connections; each sends its next request when it has its answer.
        seconds: at least 1; wrk knows whole ones only.
        first: number of the body to begin with.
        cpus: where wrk may run.

    Raises:
        ServerError: an answer was not 200, or there was none.
    """
    command = [
        *("wrk", "--threads", "1", "--connections", str(concurrency)),
        *("--duration", f"{round(seconds)}s", "--timeout", f"{TIMEOUT_S}s"),
        *("--script", str(SCRIPT), f"http://{HOST}:{port}", "--", str(bodies), str(first)),
    ]
    before_s = _children_cpu_s()
    done = subprocess.run(on_cpus(command, cpus), capture_output=True, text=True, check=False)
    # servers count only once they have ended, so the difference is wrk alone
    cpu_s = _children_cpu_s() - before_s
    return parse(done.stdout, cpu_s)


def parse(output: str, cpu_s: float) -> Cell:
    """The figures in wrk's output.

    Raises:
        ServerError: there are none, nothing was answered, or something went wrong.
    """
    results = [line for line in output.splitlines() if line.startswith("result ")]
    if not results:
        raise ServerError(f"wrk gave no result:\n{output}")
    result = json.loads(results[-1].removeprefix("result "))
    errors = {k: result[k] for k in ("bad_status", "connect", "read", "write", "timeout")}
    if any(errors.values()) or not result["requests"]:
        raise ServerError(f"{result['requests']} requests were answered, with errors: {errors}")
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
