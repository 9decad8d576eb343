"""Length and examples of the README."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.settings import Settings
from tests.docs import pages
from tests.docs.client_examples import run_python
from tests.docs.local_service import serving
from tests.docs.shell_examples import check_shell_examples

README = pages.read(pages.ROOT / "README.md")
MAX_LINES, MAX_BYTES = 130, 7000
PYTHON = [block.split("```")[0] for block in README.split("```python")[1:]]
CURL_BODY = re.compile(r"-d '(\{.*?\})'", re.DOTALL)


def test_readme_fits_one_page() -> None:
    assert len(README.splitlines()) <= MAX_LINES
    assert len(README.encode()) <= MAX_BYTES


def test_readme_links_to_every_page() -> None:
    linked = {(pages.ROOT / target).resolve() for target in pages.links(pages.ROOT / "README.md")}
    assert set(pages.DOCS.glob("*.md")) <= linked


def test_response_under_the_first_curl_is_the_real_one() -> None:
    with TestClient(create_app(Settings())) as client:
        [body] = CURL_BODY.findall(README)
        printed = json.loads(README.split("```json")[1].split("```")[0])
        response = client.post("/fill-mask", json=json.loads(body)).json()
    for fill in (*printed, *response):
        fill["score"] = pytest.approx(fill["score"], abs=1e-3)
    assert response == printed


def test_the_library_prints_the_best_fill() -> None:
    assert run_python(PYTHON[0]) == "Paris is the capital of France.\n"


def test_python_example_prints_five_fills() -> None:
    code = PYTHON[1]
    assert "http://127.0.0.1:8000" in code
    with serving() as host:
        printed = run_python(code.replace("127.0.0.1:8000", host))
    assert re.fullmatch(r"(0\.\d{3} \S+\n){5}", printed)


@pytest.mark.processes
def test_command_prints_what_is_shown(tmp_path: Path) -> None:
    assert check_shell_examples(README, tmp_path) == 1
