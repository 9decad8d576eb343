"""Processes of contenders on given CPUs, with their memory and start time."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from benchmarks.comparison.workspace import CACHE, ROOT

START_LIMIT_S = 300.0
STOP_LIMIT_S = 20.0
HOST = "127.0.0.1"
_POLL_S = 0.01


class ServerError(RuntimeError):
    """Failure of a contender to start or to answer correctly."""


@dataclass(frozen=True, slots=True)
class Server:
    """Running server.

    Attributes:
        port: TCP port on HOST.
        ready_s: seconds from the start of the process until it is ready.
        pid: id of the main process.
    """

    port: int
    ready_s: float
    pid: int

    def peak_rss_bytes(self) -> int:
        """Return the sum of the peak memory of all processes.

        A page that several processes share counts once per process.
        """
        return sum(_status_bytes(pid, "VmHWM") for pid in _tree(self.pid))

    def rss_bytes(self) -> int:
        """Return the sum of the current memory of all processes."""
        return sum(_status_bytes(pid, "VmRSS") for pid in _tree(self.pid))


def output_of(
    module: str, arguments: Sequence[str], cpus: Sequence[int], limit_s: float | None = None
) -> str:
    """Return the output of `python -m module arguments` in a separate process on some CPUs.

    Raises:
        RuntimeError: the process failed. The message contains the end of its error output.
    """
    done = subprocess.run(
        on_cpus([sys.executable, "-m", module, *arguments], cpus),
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=limit_s,
    )
    if done.returncode:
        raise RuntimeError(
            f"{module} {' '.join(arguments)} must exit with code 0 (got {done.returncode}):\n"
            f"{done.stderr[-2000:]}"
        )
    return done.stdout


def environment() -> dict[str, str]:
    """Return environment variables that disable downloads and telemetry.

    The result excludes fillmask's settings. The variable `CI` disables openvino-telemetry.
    """
    inherited = {k: v for k, v in os.environ.items() if not k.upper().startswith("FILLMASK_")}
    return inherited | {
        "CI": "true",
        "HF_HUB_OFFLINE": "1",
        "ORT_DISABLE_TELEMETRY": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def on_cpus(command: Sequence[str], cpus: Sequence[int]) -> list[str]:
    """Return a command that runs only on some CPUs."""
    return ["taskset", "--cpu-list", ",".join(map(str, cpus)), *command]


@contextlib.contextmanager
def running(command: Sequence[str], cpus: Sequence[int], log_name: str) -> Iterator[Server]:
    """Run a server on a free port until the end of the block.

    The block starts when the server is ready.

    Args:
        command: command that accepts `--port N`.
        cpus: CPUs of the server.
        log_name: name of the log file in the cache.

    Raises:
        ServerError: the server ends before it is ready, or is not ready after START_LIMIT_S. The
            message contains the last lines of the log.
    """
    log = CACHE / "logs" / f"{log_name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    bound = on_cpus([*command, "--port", str(port)], cpus)
    with log.open("w") as output:
        started_s = time.perf_counter()
        process = subprocess.Popen(
            bound,
            cwd=ROOT,
            env=environment(),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # one signal can then end the whole process group
        )
    try:
        while not _answers(port):
            waited_s = time.perf_counter() - started_s
            if process.poll() is not None or waited_s > START_LIMIT_S:
                raise ServerError(
                    f"{log_name} is not ready after {waited_s:.0f} s:\n{_last_lines(log)}"
                )
            time.sleep(_POLL_S)
        yield Server(port, time.perf_counter() - started_s, process.pid)
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_LIMIT_S)
    with contextlib.suppress(ProcessLookupError):  # the group may have no process left
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://{HOST}:{port}/health/ready", timeout=5) as response:
            ready: bool = response.status == 200
            return ready
    except (OSError, http.client.HTTPException):
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _tree(pid: int) -> Iterator[int]:
    """Yield the ids of a process and of all its descendants."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in _read(task).split():
            yield from _tree(int(child))


def _status_bytes(pid: int, field: str) -> int:
    for line in _read(Path(f"/proc/{pid}/status")).splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return 0


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # the process has ended
        return ""


def _last_lines(file: Path) -> str:
    return "\n".join(file.read_text(errors="replace").splitlines()[-20:])
