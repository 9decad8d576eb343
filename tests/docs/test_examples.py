"""Code on the pages, run unchanged with the built-in model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.docs import pages
from tests.docs.client_examples import KSERVE, run_client
from tests.docs.local_service import serving
from tests.docs.shell_examples import TOLERANCE, check_shell_examples, numbers, words

PAGES = {  # with the languages of their examples
    "filling.md": {"python", "bash"},
    "protocols.md": {"python", "javascript", "bash"},
    "requests.md": {"python", "javascript", "bash"},
    "scoring.md": {"python", "bash"},
}
HOST = "127.0.0.1:8000"
BLOCK = re.compile(r"```(python|javascript|bash)\n(.*?)```", re.DOTALL)
CURL = re.compile(r"curl -s (\S+).*?-d '(\{.*?\})'", re.DOTALL)
RESPONSE = re.compile(r"```bash\n([^`]*)```\n\n```json\n([^`]*)```")
BLOCKS = [
    pytest.param(
        language,
        code,
        id=f"{page} {number}, {language}",
        # KServe's client has an environment of its own
        marks=[pytest.mark.slow] * (KSERVE in code)
        + [pytest.mark.processes] * (language == "javascript" or KSERVE in code),
    )
    for page in PAGES
    for number, (language, code) in enumerate(BLOCK.findall(pages.read(pages.DOCS / page)))
]


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    """Host and port of a running service."""
    with serving() as host:
        yield host


@pytest.mark.parametrize(("language", "code"), BLOCKS)
def test_example_gets_a_response(language: str, code: str, host: str) -> None:
    assert HOST in code
    code = code.replace(HOST, host)
    if language == "bash":
        [(url, body)] = CURL.findall(code)
        assert httpx.post(url, json=json.loads(body)).status_code == 200
        return
    assert run_client(language, code).strip()


@pytest.mark.parametrize(("page", "languages"), PAGES.items())
def test_page_has_examples_in_its_languages(page: str, languages: set[str]) -> None:
    blocks = BLOCK.findall(pages.read(pages.DOCS / page))
    assert {language for language, _ in blocks} == languages


def test_scores_are_those_shown(host: str) -> None:
    [(code, shown)] = RESPONSE.findall(pages.read(pages.DOCS / "scoring.md"))
    [(url, body)] = CURL.findall(code.replace(HOST, host))
    printed = json.dumps(httpx.post(url, json=json.loads(body)).json())
    expected = json.dumps(json.loads(shown))
    assert numbers(printed) == pytest.approx(numbers(expected), abs=TOLERANCE)
    assert words(printed) == words(expected)


@pytest.mark.processes
def test_commands_print_what_is_shown(tmp_path: Path) -> None:
    assert check_shell_examples(pages.read(pages.DOCS / "whole-files.md"), tmp_path) >= 5
