"""Code on the page about sparse vectors, run with a small random model and a real search client."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import httpx
import pytest

from tests.docs import pages
from tests.docs.client_examples import run_python
from tests.docs.local_service import serving
from tests.docs.python_examples import python_script
from tests.docs.test_examples import CURL, HOST
from tests.service.sparse_bundles import write_sparse_bundle

NAME = "Splade_PP_en_v1"


def test_every_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    bundle = write_sparse_bundle(tmp_path / "bundles" / NAME)
    page = pages.read(pages.DOCS / "sparse.md")
    with serving(bundle) as host:
        [(address, body)] = CURL.findall(page.replace(HOST, host))
        [vector] = httpx.post(address, json=json.loads(body)).raise_for_status().json()
    assert len(vector) == 10
    code, _ = python_script(page)
    monkeypatch.chdir(tmp_path)
    output = run_python(code)
    printed = [line for line in output.splitlines() if not line.startswith("--")]
    query, literal, found = printed
    assert len(ast.literal_eval(query)) == 10
    assert sorted(ast.literal_eval(found)) == [0, 1]
    assert literal.count(":") == 10
