"""`python -m fillmask_model` as a real process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes
ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python at the root of the project."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_mistake_ends_the_process_with_status_2(tmp_path: Path) -> None:
    # The process prints one line to standard error, without a traceback.
    ended = run("-m", "fillmask_model", "parameters", str(tmp_path / "nowhere.json"))
    assert ended.returncode == 2
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("fillmask-train: ")
    assert "nowhere.json" in line


def test_a_missing_dependency_is_named() -> None:
    # The message explains how to install torch.
    ended = run(
        "-c",
        "import sys; sys.modules['torch'] = None\n"
        "from fillmask_model.__main__ import main; sys.exit(main())",
    )
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert "fillmask-train needs torch" in line
    assert "pip install '.[train]' in a checkout" in line
