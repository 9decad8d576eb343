"""Code on the page about sparse vectors, run with a small random model and a real search client."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import httpx

from tests.docs import pages
from tests.docs.python_examples import python_script
from tests.docs.test_examples import CURL, HOST
from tests.service.server_process import start_process
from tests.service.sparse_bundles import write_sparse_bundle

NAME = "Splade_PP_en_v1"


def test_every_example_runs(tmp_path: Path) -> None:
    bundle = write_sparse_bundle(tmp_path / "bundles" / NAME)
    page = pages.read(pages.DOCS / "sparse.md")
    with start_process("--bundle", str(bundle)) as (_, url):
        [(address, body)] = CURL.findall(page.replace(HOST, url.removeprefix("http://")))
        [vector] = httpx.post(address, json=json.loads(body)).raise_for_status().json()
    assert len(vector) == 10
    code, _ = python_script(page)
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nprint(literal)"],
        cwd=tmp_path,
        env=os.environ | {"NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = [line for line in done.stdout.splitlines() if not line.startswith("--")]
    query, found, literal = printed
    assert len(ast.literal_eval(query)) == 10
    assert sorted(ast.literal_eval(found)) == [0, 1]
    assert literal.count(":") == 10
