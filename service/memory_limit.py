"""How much memory this process may use before it is ended."""

from pathlib import Path

from service.cgroups import cgroup_directories, read_text

_FILES = ("memory.max", "memory.limit_in_bytes")  # of cgroups v2 and v1
# v1 says no limit as the largest number of whole pages
_NO_LIMIT_BYTES = 2**60


def memory_limit_bytes(root: Path = Path("/")) -> int | None:
    """The least limit of the process's cgroups and all above them; None where there is none.

    Args:
        root: where /proc and /sys are found.
    """
    values = [
        read_text(directory / file).strip()
        for directory in cgroup_directories("memory", root)
        for file in _FILES
    ]
    limits = [int(value) for value in values if value.isdecimal()]
    return min((limit for limit in limits if limit < _NO_LIMIT_BYTES), default=None)
