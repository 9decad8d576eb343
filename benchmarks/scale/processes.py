"""Processes of Linux: parents, CPU time, memory and titles."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Process:
    """A process at one moment.

    Attributes:
        identity: process id and start time, because Linux uses ids again.
        cpu_s: user and system time, without children.
    """

    identity: tuple[int, int]
    parent: int
    cpu_s: float

    @property
    def pid(self) -> int:
        """Process id."""
        return self.identity[0]

    @property
    def title(self) -> str:
        """Command line, in whose place Ray writes the name of an actor."""
        return _read(self.pid, "cmdline").replace("\0", " ")

    @property
    def pss_bytes(self) -> int:
        """Memory, where each of n processes that share a page counts an n-th of it."""
        for line in _read(self.pid, "smaps_rollup").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
        return 0  # the process has ended


def adopt_orphans() -> None:
    """Let this process become the parent of descendants whose own parent ends."""
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1):
        raise OSError("prctl refuses PR_SET_CHILD_SUBREAPER")


def descendants(root: int) -> list[Process]:
    """Return all processes below a process, parents first."""
    children: dict[int, list[Process]] = {}
    for process in _all():
        children.setdefault(process.parent, []).append(process)
    found = list(children.get(root, ()))
    for process in found:  # grows
        found += children.get(process.pid, ())
    return found


def _all() -> Iterator[Process]:
    for folder in PROC.iterdir():
        if folder.name.isdecimal() and (stat := _read(int(folder.name), "stat")):
            # the name before the last bracket may contain spaces; proc(5) has the order
            fields = stat.rpartition(")")[2].split()
            ticks = int(fields[11]) + int(fields[12])
            identity = (int(folder.name), int(fields[19]))
            yield Process(identity, int(fields[1]), ticks / _TICKS_PER_S)


def _read(pid: int, file: str) -> str:
    try:
        return (PROC / str(pid) / file).read_text(errors="replace")
    except OSError:  # the process has ended
        return ""
