"""Code on the page about reranking, run with a small random reranker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx

from tests.docs import pages
from tests.docs.test_examples import BLOCK, CURL, HOST
from tests.service.api.labels.bundles import write_label_bundle
from tests.service.server_process import start_process

NAME = "ms-marco-MiniLM-L6-v2"


def test_every_example_runs(tmp_path: Path) -> None:
    bundle = write_label_bundle(tmp_path / NAME, fills=False, labels=["relevant"], scale=5)
    page = pages.read(pages.DOCS / "rerank.md")
    environment = os.environ | {"NO_PROXY": "127.0.0.1"}
    ran = []
    with start_process("--bundle", str(bundle)) as (_, url):
        for language, code in BLOCK.findall(page.replace(HOST, url.removeprefix("http://"))):
            ran.append(language)
            if language == "bash":
                [(address, body)] = CURL.findall(code)
                ranks = httpx.post(address, json=json.loads(body)).raise_for_status().json()
                assert sorted(one["index"] for one in ranks) == [0, 1]
                continue
            done = subprocess.run(
                [sys.executable, "-c", code],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            index, relevance = done.stdout.split()
            assert int(index) in {0, 1}
            assert 0 < float(relevance) < 1
    assert ran == ["bash", "python"]
