"""Disk usage of a fresh virtual environment."""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.comparison.workspace import ROOT

CONSTRAINTS = ROOT / "constraints" / "comparison.txt"


@functools.cache
def installed_bytes(requirements: tuple[str, ...]) -> int:
    """Return the size of an environment with what pip installs for these requirements."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = Path(scratch) / "venv"
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        pip = [str(environment / "bin" / "pip"), "install", "--quiet"]
        pip += ["--disable-pip-version-check", "-c", str(CONSTRAINTS)]
        subprocess.run([*pip, *requirements], cwd=scratch, check=True)
        return sum(f.lstat().st_size for f in environment.rglob("*") if not f.is_symlink())
