"""Control groups of version 1 or 2, which limit the memory of processes.

Only root can use this module.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class MemoryGroup:
    """Control group that limits the memory of its processes.

    Attributes:
        path: directory of the group in /sys/fs/cgroup.
        version: version of Linux's control groups, 1 or 2.
    """

    path: Path
    version: int

    @property
    def join(self) -> str:
        """Python code by which a process moves itself into the group."""
        return f"import os; open({str(self.path / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))"

    @property
    def oom_kills(self) -> int:
        """Number of processes that the kernel killed for lack of memory."""
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        fields = dict(line.split() for line in (self.path / name).read_text().splitlines())
        return int(fields["oom_kill"])

    @property
    def peak_bytes(self) -> int:
        """Peak memory of the group, including the page cache of its files."""
        name = "memory.max_usage_in_bytes" if self.version == 1 else "memory.peak"
        return int((self.path / name).read_text())

    @property
    def socket_bytes(self) -> int | None:
        """Memory of the kernel's socket buffers, or None if the kernel does not count it."""
        path = self.path / "memory.kmem.tcp.usage_in_bytes"
        return int(path.read_text()) if path.exists() else None


def unavailable() -> str | None:
    """Return the reason why this machine cannot have a memory group, or None if it can."""
    if os.name != "posix" or os.geteuid() != 0:
        return "a limit on memory needs root and Linux's control groups"
    if _parent() is None:
        return "no controller of memory is mounted in /sys/fs/cgroup"
    return None


def _parent() -> tuple[Path, int] | None:
    first, second = _ROOT / "memory", _ROOT / "cgroup.controllers"
    if os.access(first, os.W_OK):
        return first, 1
    if second.exists() and "memory" in second.read_text() and os.access(_ROOT, os.W_OK):
        return _ROOT, 2
    return None


@contextmanager
def memory_group(name: str, limit_bytes: int) -> Iterator[MemoryGroup]:
    """Yield a new control group.

    Its processes must end before the context, because the kernel only removes empty groups.
    """
    parent = _parent()
    assert parent is not None
    directory, version = parent
    path = directory / f"{name}-{os.getpid()}"
    path.mkdir()
    limit = "memory.limit_in_bytes" if version == 1 else "memory.max"
    try:
        (path / limit).write_text(str(limit_bytes))
        if version == 1 and (path / "memory.swappiness").exists():
            (path / "memory.swappiness").write_text("0")
        yield MemoryGroup(path, version)
    finally:
        path.rmdir()
