"""The README cannot drift: its settings, answers and commands are the real ones."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from pydantic_core import PydanticUndefined

from benchmarks.running_server import running_server
from service.app import create_app
from service.settings import Settings, _variable
from tests.shell_examples import check_shell_examples

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ROUTE = r"\| `((?:GET|POST) /\S*)` \|"
CURL_BODY = re.compile(r"-d '(\{.*?\})'", re.DOTALL)


def _section(title: str) -> str:
    return README.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_settings_table_is_the_settings() -> None:
    """Every setting has its row, with its variable, default and description, and no row is left."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in _section("Settings").splitlines()
        if line.startswith("| `")
    ]
    expected = [
        [
            f"`{_variable(name)}`",
            f"`{field.default}`" if field.default not in {None, "", PydanticUndefined} else "",
            field.description,
        ]
        for name, field in Settings.model_fields.items()
    ]
    assert rows == expected


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    """The service with the built-in model."""
    with TestClient(create_app(Settings())) as client:
        yield client


def test_first_answer_is_the_real_one(client: TestClient) -> None:
    """The README's first curl gets the JSON printed under it, scores to 1e-3."""
    body = json.loads(CURL_BODY.findall(README)[0])
    printed = json.loads(README.split("```json")[1].split("```")[0])
    answered = client.post("/fill-mask", json=body).json()
    for fill in (*printed, *answered):
        fill["score"] = pytest.approx(fill["score"], abs=1e-3)
    assert answered == printed


def test_every_curl_body_is_answered(client: TestClient) -> None:
    """Each curl in the README gets a 200."""
    bodies = CURL_BODY.findall(README)
    assert len(bodies) == 2
    for body in bodies:
        assert client.post("/fill-mask", json=json.loads(body)).status_code == 200


def test_python_example_runs() -> None:
    """The README's Python code, run as it stands against a server, prints five fills."""
    code = README.split("```python")[1].split("```")[0]
    assert "http://127.0.0.1:8000" in code
    with running_server() as server:
        code = code.replace("http://127.0.0.1:8000", server.url)
        printed = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
    assert re.fullmatch(r"(0\.\d{3} \S+\n){5}", printed)


def test_examples_without_a_server_print_what_they_say(tmp_path: Path) -> None:
    """The built-in model's fills, in a shell."""
    assert check_shell_examples(_section("Without a server"), tmp_path) == 2


def test_every_route_and_make_target_exists(client: TestClient) -> None:
    """The table of requests is the OpenAPI document's, and every `make X` is a target."""
    routes = {
        f"{method.upper()} {path}"
        for path, methods in client.get("/openapi.json").json()["paths"].items()
        for method in methods
    }
    protocols = (ROOT / "docs" / "protocols.md").read_text(encoding="utf-8")
    table, others = (set(re.findall(ROUTE, page)) for page in (README, protocols))
    assert table | others == routes | {"GET /docs"}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"make ([a-z][a-z-]*)", README)) <= targets


def test_links_lead_somewhere() -> None:
    """Every relative link of the README and of CONTRIBUTING names a file of the repository."""
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (ROOT / target).exists(), target
