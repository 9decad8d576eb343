"""Memory of another process, read from /proc."""

from pathlib import Path

MB = 1_000_000


def resident_bytes(pid: int) -> int:
    return _field(pid, "VmRSS")


def peak_bytes(pid: int) -> int:
    """Return the peak of a process's resident memory in bytes since `forget_peak`."""
    return _field(pid, "VmHWM")


def forget_peak(pid: int) -> None:
    """Reset the peak of a process's resident memory."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def deleted_maps(pid: int) -> list[str]:
    """Return the lines of /proc/PID/maps about deleted weights files."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return [line for line in lines if line.endswith("(deleted)") and "weights" in line]


def _field(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise ValueError(name)
