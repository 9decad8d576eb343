"""Code of the page about Python, with the output shown under it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.python_examples import END, python_script
from tests.docs.shell_examples import TOLERANCE, numbers, words


def test_code_prints_what_is_shown(tmp_path: Path) -> None:
    code, shown = python_script(pages.read(pages.DOCS / "python.md"))
    script = tmp_path / "page.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.removesuffix(END).split(END)
    assert len(printed) == len(shown) >= 4
    for found, expected in zip(printed, shown, strict=True):
        assert numbers(found) == pytest.approx(numbers(expected), abs=TOLERANCE)
        assert words(found) == words(expected)
