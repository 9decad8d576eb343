"""What CPUs this process has: how many it may use, and whether their int8 products are exact."""

import os
import platform
from collections.abc import Iterator
from pathlib import Path

from service.cgroups import cgroup_directories, read_text


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
    flags = read_text(root / "proc/cpuinfo").partition("\nflags")[2].partition("\n")[0].split()
    return not {"avx512_vnni", "avx_vnni"} & set(flags)


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cgroup_quotas(root: Path) -> Iterator[float]:
    """The CPU quotas, in CPUs, of the process's cgroups and all above them."""
    for directory in cgroup_directories("cpu", root):
        yield from _v2_quota(directory)
        yield from _v1_quota(directory)


def _v2_quota(directory: Path) -> Iterator[float]:
    quota_us, _, period_us = read_text(directory / "cpu.max").partition(" ")
    if quota_us.isdecimal() and period_us.strip().isdecimal():
        yield int(quota_us) / int(period_us)


def _v1_quota(directory: Path) -> Iterator[float]:
    quota_us = read_text(directory / "cpu.cfs_quota_us").strip()  # -1 for none
    period_us = read_text(directory / "cpu.cfs_period_us").strip()
    if quota_us.isdecimal() and period_us.isdecimal():
        yield int(quota_us) / int(period_us)
