"""The memory limit, on trees made to look like /sys."""

from pathlib import Path

import pytest

from service.memory_limit import memory_limit_bytes

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
