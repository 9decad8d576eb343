"""Runner of the client examples on the pages, in Python and JavaScript."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.kserve_python import kserve_python


def run_client(language: str, code: str) -> str:
    """Run the code of a client and return its standard output."""
    node = [str(Path(sys.executable).parent / "node"), "--input-type=module", "-e"]
    python = [kserve_python() if "from kserve import" in code else sys.executable, "-c"]
    command = python if language == "python" else node
    done = subprocess.run([*command, code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout
