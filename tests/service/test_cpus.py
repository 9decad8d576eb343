"""How many CPUs and of what kind, on trees made to look like /proc and /sys."""

import os
import platform
from pathlib import Path

import pytest

from service.host import may_saturate_int8, usable_cpus


@pytest.fixture(autouse=True)
def _eight_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)))


def tree(root: Path, files: dict[str, str]) -> Path:
    """Write the files under the root."""
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return root


V1_LINE = "4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n"
V1 = "sys/fs/cgroup/cpu,cpuacct"
CASES = {
    "no cgroup": ({}, 8),
    "v2 no quota": (
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"},
        8,
    ),
    "v2 at the mount": (
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "300000 100000\n"},
        3,
    ),
    "v2 fraction is rounded down": (
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "250000 100000\n"},
        2,
    ),
    "v2 less than one": (
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "20000 100000\n"},
        1,
    ),
    "v2 above the machine": (
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "6400000 100000\n"},
        8,
    ),
    "v2 the parent binds": (
        {
            "proc/self/cgroup": "0::/kube/pod/box\n",
            "sys/fs/cgroup/kube/pod/box/cpu.max": "max 100000\n",
            "sys/fs/cgroup/kube/pod/cpu.max": "400000 100000\n",
            "sys/fs/cgroup/kube/cpu.max": "600000 100000\n",
        },
        4,
    ),
    "v2 the path is the host's": (
        {"proc/self/cgroup": "0::/../../pod/box\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"},
        2,
    ),
    "v1": (
        {
            "proc/self/cgroup": V1_LINE,
            f"{V1}/docker/abc/cpu.cfs_quota_us": "350000\n",
            f"{V1}/docker/abc/cpu.cfs_period_us": "100000\n",
        },
        3,
    ),
    "v1 no quota": (
        {
            "proc/self/cgroup": V1_LINE,
            f"{V1}/cpu.cfs_quota_us": "-1\n",
            f"{V1}/cpu.cfs_period_us": "100000\n",
        },
        8,
    ),
    "v1 mounted as cpu, seen from inside": (
        {
            "proc/self/cgroup": V1_LINE,
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "500000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
        5,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_quota(case: str, tmp_path: Path) -> None:
    """The least of affinity and all quotas, rounded down, at least 1."""
    files, expected = CASES[case]
    assert usable_cpus(tree(tmp_path, files)) == expected


def test_affinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is bound to fewer CPUs than its quota uses those."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {1, 5})
    files = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "400000 100000\n"}
    assert usable_cpus(tree(tmp_path, files)) == 2


def test_without_affinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system has no affinity, as on macOS, the machine's CPUs count."""
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert usable_cpus(tmp_path) == 6


@pytest.mark.parametrize(
    ("machine", "flags", "expected"),
    [
        ("x86_64", "fpu avx2 avx512f avx512_vnni", False),
        ("x86_64", "fpu avx2 avx_vnni", False),
        ("AMD64", "fpu avx2 avx512f avx512bw", True),
        ("x86_64", "fpu avx2", True),
        ("x86_64", None, True),
        ("aarch64", None, False),
        ("arm64", None, False),
    ],
)
def test_saturation(
    machine: str,
    flags: str | None,
    expected: bool,  # noqa: FBT001 - pytest passes it
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only x86 without VNNI may saturate, and x86 of which nothing is known."""
    monkeypatch.setattr(platform, "machine", lambda: machine)
    if flags is not None:
        tree(tmp_path, {"proc/cpuinfo": f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t: vnni\n"})
    assert may_saturate_int8(tmp_path) is expected
