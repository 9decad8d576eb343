"""Runs of the code from the playground's code panel."""

import json
import os
import subprocess
import sys
from typing import Any

from playwright.sync_api import Page

from tests.service.playground.browser import NODE
from tests.service.playground.playground import Playground


def code_of(playground: Playground, language: str) -> str:
    """Return the code in a language of the code panel."""
    playground.page.get_by_role("radio", name=language).check()
    return playground.page.locator("#snippet").text_content() or ""


def run_curl(code: str, **variables: str) -> Any:
    """Run the code in a shell and return the service's response."""
    return json.loads("".join(_printed(["sh", "-c"], code, variables)))


def run_python(code: str, **variables: str) -> list[str]:
    """Run the code and return its printed lines."""
    return _printed([sys.executable, "-c"], code, variables)


def run_javascript(code: str) -> list[str]:
    """Run the code in Node and return its printed lines."""
    return _printed([str(NODE), "--input-type=module", "-e"], code, {})


def run_in_page(page: Page, code: str) -> list[str]:
    """Run JavaScript in a page and return the lines that the code logs."""
    lines: list[str] = page.evaluate(
        f"""async () => {{
            const lines = [];
            const console = {{ log: (...given) => lines.push(given.join(" ")) }};
            {code}
            return lines;
        }}"""
    )
    return lines


def _printed(command: list[str], code: str, variables: dict[str, str]) -> list[str]:
    done = subprocess.run(
        [*command, code],
        env={**os.environ, **variables, "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
