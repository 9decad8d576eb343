"""How much memory this process may use before it is ended."""

from pathlib import Path

# cgroup v2, and v1; within a container its own cgroup is the root of the mount
_FILES = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")
# v1 says no limit as the largest number of whole pages
_NO_LIMIT_BYTES = 2**60


def memory_limit_bytes(root: Path = Path("/")) -> int | None:
    """The limit of the container, in bytes; None where there is none.

    Args:
        root: where /sys is found.
    """
    for file in _FILES:
        try:
            value = (root / file).read_text().strip()
        except OSError:
            continue
        if value.isdecimal() and int(value) < _NO_LIMIT_BYTES:
            return int(value)
    return None
