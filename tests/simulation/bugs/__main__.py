"""Command that simulates copies of the service with one bug each, and times how long each hides."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.running_server import SOURCE_ROOTS
from tests.simulation.bugs.bug import Bug
from tests.simulation.bugs.engine import ENGINE
from tests.simulation.bugs.requests import REQUESTS
from tests.simulation.seeds import first_seed

BUGS = (*ENGINE, *REQUESTS)
SERVICE = next(root for root in SOURCE_ROOTS if root.name == "service")
LIMIT_S = 60.0
_VIOLATION = "breaks a promise:\n"


def main() -> int:
    """Look for each bug, or for those whose name contains an argument."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.bugs", description=__doc__)
    parser.add_argument("words", nargs="*", help="words of the names of the bugs")
    words = parser.parse_args().words
    bugs = [bug for bug in BUGS if not words or any(word in bug.name for word in words)]
    missed = 0
    for bug in bugs:
        seconds, violation = find(bug)
        missed += not violation
        result = violation.splitlines()[0] if violation else "MISSED"
        print(f"{seconds:5.1f} s  {bug.name}: {result}"[:200], flush=True)
    print(f"found {len(bugs) - missed} of {len(bugs)} bugs")
    return int(missed > 0)


def find(bug: Bug) -> tuple[float, str]:
    """Simulate the service with a bug, for at most LIMIT_S on all CPUs.

    Returns:
        The seconds until the first violation, and the violation, or "" without one.
    """
    with tempfile.TemporaryDirectory() as directory:
        package = Path(directory) / "fillmask"
        without = shutil.ignore_patterns("__pycache__", "default")
        shutil.copytree(SERVICE / "fillmask", package, ignore=without)
        bug.put_into(package)
        roots = [directory, *(str(root) for root in SOURCE_ROOTS if root != SERVICE)]
        command = [sys.executable, "-m", "tests.simulation", "--first", str(first_seed())]
        begun_s = time.monotonic()
        ended = subprocess.run(
            [*command, "--seconds", str(LIMIT_S)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(roots)},
            cwd=SERVICE.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - begun_s
    if "seeds from" not in ended.stdout:
        raise RuntimeError(f"{bug.name}: the simulation does not run:\n{ended.stderr[-2000:]}")
    return seconds, ended.stdout.partition(_VIOLATION)[2]


if __name__ == "__main__":
    sys.exit(main())
