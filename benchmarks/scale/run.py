"""A shell command with all that it starts: time, CPU time, memory, and a kill -9 on request."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.scale.processes import Process, adopt_orphans, descendants

INTERVAL_S = 0.25


@dataclass(frozen=True, slots=True)
class Kill:
    """A kill -9 in the middle of a run.

    Attributes:
        title: part of the title of the processes, of which the busiest one is killed.
        ready: says whether the run is in its middle.
    """

    title: str
    ready: Callable[[], bool]


@dataclass(slots=True)
class Run:
    """Result of a command.

    Attributes:
        cpu_by_process: user and system time, at most INTERVAL_S before the end of the process.
        peak_bytes: highest sum of the memory of all processes.
        processes: number of processes at that moment.
        killed: id of the process that was killed on request. None without one.
    """

    exit_code: int = -1
    seconds: float = 0
    cpu_by_process: dict[tuple[int, int], float] = field(default_factory=dict)
    peak_bytes: int = 0
    processes: int = 0
    killed: int | None = None

    @property
    def cpu_s(self) -> float:
        """CPU time of all processes."""
        return sum(self.cpu_by_process.values())


def run_shell(
    command: str,
    folder: Path,
    environment: Mapping[str, str],
    log: Path,
    kill: Kill | None = None,
) -> Run:
    """Run shell commands, and end everything that they leave behind."""
    adopt_orphans()
    run, started_s = Run(), time.perf_counter()
    with log.open("wb") as output:
        shell = subprocess.Popen(
            ["/bin/sh", "-e", "-c", command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            # WNOWAIT keeps the ended process, so that the last sample has its whole CPU time
            while os.waitid(os.P_PID, shell.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                time.sleep(INTERVAL_S)
                _sample(run, kill)
            run.seconds = time.perf_counter() - started_s
            run.exit_code = shell.wait()
        finally:
            _end_all()
    return run


def _sample(run: Run, kill: Kill | None) -> None:
    tree = descendants(os.getpid())
    if (total_bytes := sum(process.pss_bytes for process in tree)) > run.peak_bytes:
        run.peak_bytes, run.processes = total_bytes, len(tree)
    if kill is not None and run.killed is None and kill.ready():
        victim = _busiest(tree, run, kill.title)
        if victim is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim.pid, signal.SIGKILL)
                run.killed = victim.pid
    run.cpu_by_process |= {process.identity: process.cpu_s for process in tree}


def _busiest(tree: Sequence[Process], run: Run, title: str) -> Process | None:
    """Return the process that computed most since the last sample, if any computed."""
    grown = {
        process: process.cpu_s - run.cpu_by_process.get(process.identity, process.cpu_s)
        for process in tree
        if title in process.title
    }
    busiest = max(grown, key=grown.__getitem__, default=None)
    return busiest if busiest is not None and grown[busiest] > 0 else None


def _end_all() -> None:
    while left := descendants(os.getpid()):
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)
