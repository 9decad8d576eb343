"""The cgroups of this process, in either version, and all above them: each may have a limit."""

from collections.abc import Iterator
from pathlib import Path


def cgroup_directories(controller: str, root: Path) -> Iterator[Path]:
    """Yield the directories in which limits of the process are found, the innermost first.

    A container often sees the path it has on the host, which does not exist in its own mount; the
    directories that do exist are the ones that bind it.

    Args:
        controller: `cpu` or `memory`.
        root: where /proc and /sys are found.
    """
    mounts = root / "sys/fs/cgroup"
    # without a list the process is in the cgroup that is mounted
    lines = read_text(root / "proc/self/cgroup").splitlines() or ["0::/", f"1:{controller}:/"]
    for line in lines:
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if hierarchy == "0":  # version 2
            yield from _upwards(mounts, path)
        elif controller in controllers.split(","):
            for name in dict.fromkeys((controllers, controller)):
                yield from _upwards(mounts / name, path)


def read_text(file: Path) -> str:
    """Read a file of the kernel's; empty where there is none."""
    try:
        return file.read_text()
    except OSError:
        return ""


def _upwards(mount: Path, path: str) -> Iterator[Path]:
    """The cgroup's directory and its parents, up to the mount."""
    parts = [part for part in path.split("/") if part not in {"", ".."}]
    for depth in range(len(parts), -1, -1):
        yield mount.joinpath(*parts[:depth])
