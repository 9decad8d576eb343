"""`python -m fillmask_model` as a real process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT_TORCH = """
import runpy, sys
sys.modules["torch"] = None
runpy.run_module("fillmask_model", run_name="__main__")
"""


@pytest.mark.processes
def test_a_missing_dependency_is_named() -> None:
    # The message explains how to install torch.
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert "fillmask-train needs torch" in line
    assert "pip install '.[train]' in a checkout" in line
