"""The code in docs/ runs as it stands, with the built-in model: against a service, or without."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks.running_server import running_server
from tests.shell_examples import check_shell_examples

ROOT = Path(__file__).parents[1]
PAGES = ("filling.md", "protocols.md", "scoring.md")
HOST = "127.0.0.1:8000"
BLOCK = re.compile(r"```(python|javascript|bash)\n(.*?)```", re.DOTALL)
CURL = re.compile(r"curl -s (\S+).*?-d '(\{.*?\})'", re.DOTALL)
BLOCKS = [
    pytest.param(language, code, id=f"{page} {number}, {language}")
    for page in PAGES
    for number, (language, code) in enumerate(
        BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    )
]


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    """Where the service listens."""
    with running_server() as server:
        yield server.url.removeprefix("http://")


@pytest.mark.parametrize(("language", "code"), BLOCKS)
def test_example(language: str, code: str, host: str) -> None:
    """It asks the service, and something comes of it."""
    assert HOST in code
    code = code.replace(HOST, host)
    if language == "bash":
        [(url, body)] = CURL.findall(code)
        answer = httpx.post(url, json=json.loads(body))
        assert answer.status_code == 200
        return
    node = [str(Path(sys.executable).parent / "node"), "--input-type=module", "-e"]
    command = [sys.executable, "-c"] if language == "python" else node
    done = subprocess.run([*command, code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_each_page_has_examples_in_each_language() -> None:
    """curl, Python and JavaScript."""
    for page in PAGES:
        blocks = BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
        assert {language for language, _ in blocks} == {"python", "javascript", "bash"}


def test_examples_of_the_command(tmp_path: Path) -> None:
    """In a shell, one after the other, they print what the page says they print."""
    page = (ROOT / "docs" / "whole-files.md").read_text(encoding="utf-8")
    assert check_shell_examples(page, tmp_path) >= 5
