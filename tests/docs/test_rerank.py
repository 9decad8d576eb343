"""Code on the page about reranking, run with a small random reranker."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tests.docs import pages
from tests.docs.client_examples import run_python
from tests.docs.local_service import serving
from tests.docs.test_examples import BLOCK, CURL, HOST
from tests.service.api.labels.bundles import write_label_bundle

NAME = "ms-marco-MiniLM-L6-v2"


def test_every_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    bundle = write_label_bundle(tmp_path / NAME, fills=False, labels=["relevant"], scale=5)
    page = pages.read(pages.DOCS / "rerank.md")
    ran = []
    with serving(bundle) as host:
        for language, code in BLOCK.findall(page.replace(HOST, host)):
            ran.append(language)
            if language == "bash":
                [(address, body)] = CURL.findall(code)
                ranks = httpx.post(address, json=json.loads(body)).raise_for_status().json()
                assert sorted(one["index"] for one in ranks) == [0, 1]
                continue
            index, relevance = run_python(code).split()
            assert int(index) in {0, 1}
            assert 0 < float(relevance) < 1
    assert ran == ["bash", "python"]
