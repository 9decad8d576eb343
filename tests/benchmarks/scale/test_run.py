"""Runs of shell commands, with a kill and with processes that outlive their parents."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]
ROOT = Path(__file__).parents[3]
BUSY = f"{sys.executable} -c 'while True: pass'"
ORPHAN = f"{sys.executable} -c 'import time; sum(range(20_000_000)); time.sleep(60)'"
# A process of its own, because run_shell ends all descendants of its process.
CODE = """
import json, os, sys
from pathlib import Path
from benchmarks.scale.processes import descendants
from benchmarks.scale.run import Kill, run_shell
command, title, log = sys.argv[1:]
kill = Kill(title, lambda: True) if title else None
run = run_shell(command, Path(), os.environ, Path(log), kill)
print(json.dumps({"code": run.exit_code, "cpu_s": run.cpu_s, "bytes": run.peak_bytes,
                  "killed": run.killed is not None, "left": len(descendants(os.getpid()))}))
"""


def run(command: str, victim: str, log: Path) -> dict[str, Any]:
    arguments = [sys.executable, "-c", CODE, command, victim, str(log)]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_orphans_count_and_end_with_the_run(tmp_path: Path) -> None:
    result = run(f"({ORPHAN} &); sleep 1", "", tmp_path / "log")
    assert result["code"] == result["left"] == 0
    assert result["cpu_s"] > 0.1  # the shell and sleep need a hundredth of this
    assert result["bytes"] > 0


def test_busy_process_is_killed(tmp_path: Path) -> None:
    result = run(BUSY, "while True", tmp_path / "log")
    assert result["killed"]
    assert result["code"] != 0


def test_idle_process_is_not_killed(tmp_path: Path) -> None:
    result = run("exec sleep 0.7", "sleep", tmp_path / "log")
    assert not result["killed"]
    assert result["code"] == 0
