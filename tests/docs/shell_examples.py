"""Shell examples of a page, compared with the output shown under them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# a block of code, and the optional block of output directly under it
EXAMPLE = re.compile(r"```bash\n(.*?)```(?:\n\n```(?:text|json|csv)\n(.*?)```)?", re.DOTALL)
NUMBER = re.compile(r"\d+\.\d+(?:e-?\d+)?")
BAR = re.compile(r"[▏▎▍▌▋▊▉█]")
TOLERANCE = 1e-3  # difference of probabilities between CPUs


def checkout_command(directory: Path) -> dict[str, str]:
    """Write the command `fillmask` of this checkout, and return variables that lead to it.

    The installed command may belong to another checkout.
    """
    command = directory / "fillmask"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fillmask.cli "$@"\n')
    command.chmod(0o755)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("FILLMASK_")}
    return inherited | {"PATH": f"{directory}{os.pathsep}{os.environ['PATH']}"}


def check_shell_examples(page: str, directory: Path, variables: dict[str, str]) -> int:
    """Check the output of a page's examples and return the number of examples with output.

    Args:
        page: text of the page in Markdown.
        directory: an empty directory for the examples.
        variables: environment, in which `fillmask` is on the path.
    """
    shown = 0
    for code, expected in EXAMPLE.findall(page):
        done = subprocess.run(
            ["bash", "-e", "-c", code],
            cwd=directory,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert numbers(done.stdout) == pytest.approx(numbers(expected), abs=TOLERANCE)
        assert words(done.stdout) == words(expected)
        shown += bool(expected)
    return shown


def numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]


def words(text: str) -> list[str]:
    """Return the words of a text without numbers, progress bars and white space."""
    return BAR.sub("", NUMBER.sub("", text)).split()
