"""The memory limit, on trees made to look like /sys."""

from pathlib import Path

import pytest

from service.host import memory_limit_bytes

V1 = "sys/fs/cgroup/memory/memory.limit_in_bytes"
V2 = "sys/fs/cgroup/memory.max"


@pytest.mark.parametrize(
    ("file", "content", "limit"),
    [
        (V2, "1073741824\n", 2**30),
        (V2, "max\n", None),
        (V1, "536870912\n", 2**29),
        (V1, "9223372036854771712\n", None),
        (V2, "", None),
        ("elsewhere", "1", None),
    ],
)
def test_limit(file: str, content: str, limit: int | None, tmp_path: Path) -> None:
    """That of the container, in either version of cgroups."""
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(content)
    assert memory_limit_bytes(tmp_path) == limit


LINES = "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/kube/pod/box\n"
V1_MOUNT, V2_MOUNT = "sys/fs/cgroup/memory", "sys/fs/cgroup"


@pytest.mark.parametrize(
    ("limits", "least"),
    [
        ({f"{V2_MOUNT}/kube/pod/box/memory.max": 2**29}, 2**29),
        ({f"{V2_MOUNT}/kube/pod/memory.max": 2**28}, 2**28),
        (
            {
                f"{V2_MOUNT}/kube/pod/box/memory.max": 2**30,
                f"{V2_MOUNT}/kube/pod/memory.max": 2**29,
                f"{V2_MOUNT}/kube/memory.max": 2**31,
            },
            2**29,
        ),
        ({f"{V1_MOUNT}/docker/abc/memory.limit_in_bytes": 2**27}, 2**27),
        (
            {
                f"{V1_MOUNT}/docker/abc/memory.limit_in_bytes": 9223372036854771712,
                f"{V1_MOUNT}/docker/memory.limit_in_bytes": 2**28,
            },
            2**28,
        ),
        ({f"{V1_MOUNT}/other/memory.limit_in_bytes": 2**27}, None),
    ],
)
def test_the_least_of_all_above(limits: dict[str, int], least: int | None, tmp_path: Path) -> None:
    """Of the process's own cgroup and of each that it is in."""
    for name, text in {"proc/self/cgroup": LINES, **limits}.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    assert memory_limit_bytes(tmp_path) == least
