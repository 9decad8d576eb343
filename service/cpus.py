"""What CPUs this process has: how many it may use, and whether their int8 products are exact."""

import os
import platform
from collections.abc import Iterator
from pathlib import Path


def usable_cpus(root: Path = Path("/")) -> int:
    """The least of affinity and cgroup quotas, rounded down, at least 1.

    Args:
        root: where /proc and /sys are found.
    """
    quotas = [_affinity(), *_cgroup_quotas(root)]
    return max(1, int(min(quotas)))


def may_saturate_int8(root: Path = Path("/")) -> bool:
    """Whether the fast products of unsigned and signed bytes can overflow on this CPU.

    On x86 they add pairs of products in 16 bits, unless the CPU has VNNI instructions. Where that
    cannot be told, it is assumed.

    Args:
        root: where /proc is found.
    """
    if platform.machine().lower() not in {"x86_64", "amd64"}:
        return False
    flags = _read(root / "proc/cpuinfo").partition("\nflags")[2].partition("\n")[0].split()
    return not {"avx512_vnni", "avx_vnni"} & set(flags)


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cgroup_quotas(root: Path) -> Iterator[float]:
    """The CPU quotas, in CPUs, of the process's cgroups and all above them."""
    mounts = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if hierarchy == "0":
            for directory in _upwards(mounts, path):
                yield from _v2_quota(directory)
        elif "cpu" in controllers.split(","):
            for mount in (mounts / controllers, mounts / "cpu"):
                for directory in _upwards(mount, path):
                    yield from _v1_quota(directory)


def _upwards(mount: Path, path: str) -> Iterator[Path]:
    """The cgroup's directory and its parents, up to the mount.

    A container often sees the path it has on the host, which does not exist in its own mount;
    the directories that do exist are the ones that bind it.
    """
    parts = [part for part in path.split("/") if part not in {"", ".."}]
    for depth in range(len(parts), -1, -1):
        yield mount.joinpath(*parts[:depth])


def _v2_quota(directory: Path) -> Iterator[float]:
    quota_us, _, period_us = _read(directory / "cpu.max").partition(" ")
    if quota_us.isdecimal() and period_us.strip().isdecimal():
        yield int(quota_us) / int(period_us)


def _v1_quota(directory: Path) -> Iterator[float]:
    quota_us = _read(directory / "cpu.cfs_quota_us").strip()  # -1 for none
    period_us = _read(directory / "cpu.cfs_period_us").strip()
    if quota_us.isdecimal() and period_us.isdecimal():
        yield int(quota_us) / int(period_us)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
