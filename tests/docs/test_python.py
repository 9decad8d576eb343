"""Code of the page about Python, with the output shown under it."""

import pytest

from tests.docs import pages
from tests.docs.client_examples import run_python
from tests.docs.python_examples import END, python_script
from tests.docs.shell_examples import TOLERANCE, numbers, words


def test_code_prints_what_is_shown() -> None:
    code, shown = python_script(pages.read(pages.DOCS / "python.md"))
    printed = run_python(code).removesuffix(END).split(END)
    assert len(printed) == len(shown) >= 4
    for found, expected in zip(printed, shown, strict=True):
        assert numbers(found) == pytest.approx(numbers(expected), abs=TOLERANCE)
        assert words(found) == words(expected)
