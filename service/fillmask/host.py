"""CPUs and memory that are available to this process."""

import os
import platform
from collections.abc import Iterator
from pathlib import Path


def usable_cpus(root: Path = Path("/")) -> int:
    """Return the minimum of the CPUs in the affinity mask and the cgroup quotas, at least 1.

    Args:
        root: directory that contains /proc and /sys, as in the other functions.
    """
    affinity = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        affinity = len(os.sched_getaffinity(0))
    return max(1, int(min([affinity, *_cgroup_quotas(root)])))


def may_saturate_int8(root: Path = Path("/")) -> bool:
    """Return whether fast products of unsigned and signed bytes can overflow on this CPU.

    x86 CPUs without VNNI instructions add pairs of products in 16 bits. An x86 CPU with unknown
    instructions counts as a CPU without VNNI.
    """
    if platform.machine().lower() not in {"x86_64", "amd64"}:
        return False
    flags = read_text(root / "proc/cpuinfo").partition("\nflags")[2].partition("\n")[0].split()
    return not {"avx512_vnni", "avx_vnni"} & set(flags)


def _cgroup_quotas(root: Path) -> Iterator[float]:
    """Yield the quotas of the process's cgroups and of their parents, in CPUs."""
    for directory in cgroup_directories("cpu", root):
        v1 = (read_text(directory / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
        for content in (read_text(directory / "cpu.max"), " ".join(v1)):
            quota_us, _, period_us = (part.strip() for part in content.partition(" "))
            if quota_us.isdecimal() and period_us.isdecimal():  # not -1 or max, for no quota
                yield int(quota_us) / int(period_us)


_MEMORY_FILES = ("memory.max", "memory.limit_in_bytes")  # cgroups v2 and v1
# without a limit, v1 reports a multiple of the page size just below 2**63
_NO_LIMIT_BYTES = 2**60


def memory_limit_bytes(root: Path = Path("/")) -> int | None:
    """Return the smallest limit of the process's cgroups and their parents, None without one."""
    values = [
        read_text(directory / file).strip()
        for directory in cgroup_directories("memory", root)
        for file in _MEMORY_FILES
    ]
    limits = [int(value) for value in values if value.isdecimal()]
    return min((limit for limit in limits if limit < _NO_LIMIT_BYTES), default=None)


def cgroup_directories(controller: str, root: Path) -> Iterator[Path]:
    """Yield the directories of a controller that may limit the process, the innermost first.

    Some may not exist, because a container often sees the path of its cgroup on the host. The
    existing ones contain the limits of the container.
    """
    mounts = root / "sys/fs/cgroup"
    # if the list of cgroups is missing, assume the root of the mounted hierarchy
    lines = read_text(root / "proc/self/cgroup").splitlines() or ["0::/", f"1:{controller}:/"]
    for line in lines:
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if hierarchy == "0":  # cgroups v2
            yield from _upwards(mounts, path)
        elif controller in controllers.split(","):
            for name in dict.fromkeys((controllers, controller)):
                yield from _upwards(mounts / name, path)


def read_text(file: Path) -> str:
    """Return the content of a file in /proc or /sys, or an empty string if it is unreadable."""
    try:
        return file.read_text()
    except OSError:
        return ""


def _upwards(mount: Path, path: str) -> Iterator[Path]:
    """Yield the directory of a cgroup and its parents, up to the mount."""
    parts = [part for part in path.split("/") if part not in {"", ".."}]
    for depth in range(len(parts), -1, -1):
        yield mount.joinpath(*parts[:depth])
