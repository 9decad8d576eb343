"""Runs of the code from the playground's code panel."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page

from tests.service.playground.browser import NODE
from tests.service.playground.playground import Playground

# replaces curl, which a system may lack, and prints its arguments
_CURL = f"""#!{sys.executable}
import json, sys
print(json.dumps(sys.argv[1:]))
"""


def code_of(playground: Playground, language: str) -> str:
    """Return the code in a language of the code panel."""
    playground.page.get_by_role("radio", name=language).check()
    return playground.page.locator("#snippet").text_content() or ""


def run_curl(code: str, tmp_path: Path, **variables: str) -> Any:
    """Run the code in a shell and return the service's response."""
    curl = tmp_path / "curl"
    curl.write_text(_CURL)
    curl.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", code],
        env={**os.environ, **variables, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    silent, url, *options = json.loads(done.stdout)
    *names, data = options[::2]
    *headers, body = options[1::2]
    assert [silent, data, *set(names)] == ["-s", "-d", "-H"]
    sent = dict(header.split(": ", 1) for header in headers)
    answer = httpx.post(url, content=body.encode(), headers=sent)
    assert answer.status_code == 200, answer.text
    return answer.json()


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
