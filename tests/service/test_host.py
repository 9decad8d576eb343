"""CPUs and memory of a process, read from directories like /proc and /sys."""

import os
import platform
from pathlib import Path

import pytest

from fillmask.host import may_saturate_int8, memory_limit_bytes, usable_cpus


@pytest.fixture(autouse=True)
def _eight_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)))


def tree(root: Path, files: dict[str, str]) -> Path:
    """Write files below a root directory and return the directory."""
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return root


V1_LINE = "4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n"
QUOTA, PERIOD = "cpu.cfs_quota_us", "cpu.cfs_period_us"
# content of /proc/self/cgroup, files in /sys/fs/cgroup, CPUs
CASES: dict[str, tuple[str | None, dict[str, str], int]] = {
    "no cgroup": (None, {}, 8),
    "v2 at the mount": ("0::/\n", {"cpu.max": "300000 100000\n"}, 3),
    "v2 fraction is rounded down": ("0::/\n", {"cpu.max": "250000 100000\n"}, 2),
    "v2 less than one": ("0::/\n", {"cpu.max": "20000 100000\n"}, 1),
    "v2 the parent binds": (
        "0::/kube/pod/box\n",
        {
            "kube/pod/box/cpu.max": "max 100000\n",
            "kube/pod/cpu.max": "400000 100000\n",
            "kube/cpu.max": "600000 100000\n",
        },
        4,
    ),
    "v2 the path is the host's": (
        "0::/../../pod/box\n",
        {"cpu.max": "200000 100000\n", "../cpu.max": "100000 100000\n"},  # outside of the mount
        2,
    ),
    "v1": (
        V1_LINE,
        {
            f"cpu,cpuacct/docker/abc/{QUOTA}": "350000\n",
            f"cpu,cpuacct/docker/abc/{PERIOD}": "100000\n",
        },
        3,
    ),
    "v1 no quota": (
        V1_LINE,
        {f"cpu,cpuacct/{QUOTA}": "-1\n", f"cpu,cpuacct/{PERIOD}": "100000\n"},
        8,
    ),
    "v1 mounted as cpu, seen from inside": (
        V1_LINE,
        {f"cpu/{QUOTA}": "500000\n", f"cpu/{PERIOD}": "100000\n"},
        5,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_cpu_quota(case: str, tmp_path: Path) -> None:
    # The result is the minimum of affinity and quotas, rounded down to at least 1.
    cgroup, files, expected = CASES[case]
    tree(tmp_path / "sys/fs/cgroup", files)
    if cgroup is not None:
        tree(tmp_path, {"proc/self/cgroup": cgroup})
    assert usable_cpus(tmp_path) == expected


def test_affinity_below_the_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {1, 5})
    files = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "400000 100000\n"}
    assert usable_cpus(tree(tmp_path, files)) == 2


def test_without_affinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # On macOS, which has no affinity, the number of the machine's CPUs counts.
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert usable_cpus(tmp_path) == 6


@pytest.mark.parametrize(
    ("machine", "flags", "expected"),
    [
        ("x86_64", "fpu avx2 avx512f avx512_vnni", False),
        ("x86_64", "fpu avx2 avx_vnni", False),
        ("AMD64", "fpu avx2 avx512f avx512bw", True),
        ("x86_64", None, True),
        ("aarch64", None, False),
    ],
)
def test_saturation_of_int8_products(
    machine: str,
    flags: str | None,
    expected: bool,  # noqa: FBT001 - pytest passes it
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Products of int8 may saturate on x86 CPUs without VNNI or with unknown flags.
    monkeypatch.setattr(platform, "machine", lambda: machine)
    if flags is not None:
        tree(tmp_path, {"proc/cpuinfo": f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t: vnni\n"})
    assert may_saturate_int8(tmp_path) is expected


LINES = "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/kube/pod/box\n"
V1, V2 = "sys/fs/cgroup/memory", "sys/fs/cgroup"


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({f"{V2}/memory.max": "1073741824\n"}, 2**30),
        ({f"{V2}/memory.max": "max\n"}, None),
        ({f"{V1}/memory.limit_in_bytes": "536870912\n"}, 2**29),
        ({f"{V1}/memory.limit_in_bytes": "9223372036854771712\n"}, None),
        ({f"{V2}/memory.max": ""}, None),
        (
            {
                "proc/self/cgroup": LINES,
                f"{V2}/kube/pod/box/memory.max": "1024\n",
                f"{V2}/kube/pod/memory.max": "512\n",
                f"{V2}/kube/memory.max": "2048\n",
            },
            512,
        ),
        (
            {
                "proc/self/cgroup": LINES,
                f"{V1}/docker/abc/memory.limit_in_bytes": "9223372036854771712\n",
                f"{V1}/docker/memory.limit_in_bytes": "256\n",
            },
            256,
        ),
        ({"proc/self/cgroup": LINES, f"{V1}/other/memory.limit_in_bytes": "256\n"}, None),
    ],
)
def test_least_memory_limit_of_all_cgroups_above(
    files: dict[str, str], limit: int | None, tmp_path: Path
) -> None:
    assert memory_limit_bytes(tree(tmp_path, files)) == limit
