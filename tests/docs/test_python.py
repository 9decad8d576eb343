"""Code of the page about Python, with the output shown under it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.python_examples import END, python_scripts
from tests.docs.shell_examples import TOLERANCE, numbers, words

SCRIPTS = python_scripts(pages.read(pages.DOCS / "python.md"))


@pytest.mark.parametrize(("code", "shown"), SCRIPTS)
def test_code_prints_what_is_shown(code: str, shown: list[str], tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.removesuffix(END).split(END)
    assert len(printed) == len(shown)
    for found, expected in zip(printed, shown, strict=True):
        assert numbers(found) == pytest.approx(numbers(expected), abs=TOLERANCE)
        assert words(found) == words(expected)


def test_page_has_both_kinds_of_scripts() -> None:
    assert [len(shown) for _, shown in SCRIPTS] == [4, 1]
