"""Debian for aarch64 with the serving install, run by QEMU's user-mode emulation.

The emulation installs nothing on this machine. Its files are in build/arm.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.environments import SOURCE_ROOTS

ROOT = Path(__file__).parents[2]
STORE = ROOT / "build/arm"
PYTHON = "python3.11"  # the Python version of constraints/serve.txt
PYTHON_RELEASE = "bookworm"  # the Debian release with this Python
QEMU_RELEASE = "trixie"  # a Debian release with QEMU 10.0
LEAST_QEMU = 8  # in QEMU 7.2, onnxruntime 1.28 and newer end with a segmentation fault
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")


class UnavailableError(Exception):
    """Failed set-up of the emulation. The message contains the reason."""


class Emulation:
    """Emulation of aarch64 in a Debian directory, which all runs in a checkout share."""

    def __init__(self) -> None:
        self._root = STORE / "root"
        self._packages = STORE / "packages"
        self._qemu_root = STORE / "qemu"
        if sys.platform != "linux":
            raise UnavailableError("QEMU's user-mode emulation needs Linux")
        self._make(self._root, self._make_root)
        self._make(self._packages, self._install_packages)

    def python(self, cpu: str) -> tuple[str, ...]:
        """Return the command that runs the emulated Python on a CPU model.

        Raises:
            UnavailableError: the download or set-up fails.
        """
        python = self._root / "usr/bin" / PYTHON
        return (self.qemu("aarch64"), "-cpu", cpu, "-L", str(self._root), str(python))

    def qemu(self, architecture: str) -> str:
        """Return the path of this machine's QEMU if it is new enough, or of a downloaded QEMU."""
        for name in (f"qemu-{architecture}", f"qemu-{architecture}-static"):
            found = shutil.which(name)
            if found and _major_version(found) >= LEAST_QEMU:
                return found
        self._make(self._qemu_root, self._download_qemu)
        return str(self._qemu_root / f"usr/bin/qemu-{architecture}")

    @property
    def environment(self) -> dict[str, str]:
        return environment(self._packages)

    def _make(self, directory: Path, make: Callable[[Path], None]) -> None:
        """Create a directory with `make`, unless the directory exists."""
        if directory.exists():
            return
        unfinished = directory.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        make(unfinished)
        unfinished.rename(directory)

    def _make_root(self, directory: Path) -> None:
        for package in _download_debian(PYTHON_RELEASE, "arm64", PYTHON):
            _run("dpkg-deb", "-x", str(package), str(directory))

    def _download_qemu(self, directory: Path) -> None:
        host = _run("dpkg", "--print-architecture").strip()
        for package in _download_debian(QEMU_RELEASE, host, "qemu-user"):
            if package.name.startswith("qemu-user_"):
                _run("dpkg-deb", "-x", str(package), str(directory))

    def _install_packages(self, directory: Path) -> None:
        """Install the wheels of the serving install for aarch64 at their pinned versions."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        requirements = [one.partition(";")[0].strip() for one in project["dependencies"]]
        _run(
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--target", str(directory), "--only-binary", ":all:"),
            *("--python-version", PYTHON.removeprefix("python"), "--implementation", "cp"),
            *(flag for platform in PLATFORMS for flag in ("--platform", platform)),
            *("--constraint", str(ROOT / "constraints/serve.txt"), *requirements),
        )


def environment(*packages: Path) -> dict[str, str]:
    """Return environment variables for Python with this checkout, without FILLMASK_ settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("FILLMASK_")}
    path = os.pathsep.join(map(str, [*packages, *SOURCE_ROOTS]))
    return kept | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def _download_debian(release: str, architecture: str, package: str) -> Sequence[Path]:
    """Download the packages of a minimal Debian, including `package` and its dependencies."""
    if shutil.which("debootstrap") is None or shutil.which("dpkg-deb") is None:
        raise UnavailableError("it needs debootstrap and dpkg (apt-get install debootstrap)")
    if os.geteuid() != 0:
        raise UnavailableError("debootstrap needs root")
    directory = STORE / f"{release}-{architecture}"
    shutil.rmtree(directory, ignore_errors=True)
    _run(
        *("debootstrap", "--download-only", f"--arch={architecture}", "--variant=minbase"),
        *(f"--include={package}", release, str(directory)),
    )
    return sorted((directory / "var/cache/apt/archives").glob("*.deb"))


def _major_version(qemu: str) -> int:
    found = re.search(r"version (\d+)\.", _run(qemu, "--version"))
    return int(found[1]) if found else 0


def _run(*command: str) -> str:
    """Run a command and return its output.

    Raises:
        UnavailableError: the command fails, e.g. without a network.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise UnavailableError(f"{command[0]} fails: {' '.join(reason)}")
    return done.stdout
