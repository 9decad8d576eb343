"""What an answer says of texts that the model does not read as written."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from fillmask import FillMask
from fillmask.observability import request_context
from tests.service.serving import serving
from tests.service.tiny import Tiny

KNOWN = "the dog [MASK]"


@pytest.mark.parametrize(
    ("path", "inputs", "header"),
    [
        ("/fill-mask", KNOWN, None),
        ("/fill-mask", [KNOWN, f"{KNOWN} xyz", f"{KNOWN} xyz"], "unknown_tokens=2"),
        ("/fill-mask", f"[SEP] {KNOWN} é [CLS]", "literal_special_tokens=2, unknown_tokens=1"),
        ("/score", "the dog xyz", "unknown_tokens=1"),
    ],
)
def test_header(client: TestClient, path: str, inputs: object, header: str | None) -> None:
    answer = client.post(path, json={"inputs": inputs})
    assert answer.status_code == 200
    assert answer.headers.get("x-warnings") == header


@pytest.mark.parametrize(
    ("path", "text", "parameters"),
    [
        ("/fill-mask", "日 [MASK] xyz", {}),
        ("/fill-mask", "日 [MASK] xyz", {"on_long_text": "window"}),
        ("/score", "日 xyz", {}),
    ],
)
def test_text_without_a_known_word(
    client: TestClient, path: str, text: str, parameters: dict[str, str]
) -> None:
    answer = client.post(path, json={"inputs": text, "parameters": parameters})
    assert answer.status_code == 422
    assert "inputs has no word that the model's vocabulary knows" in answer.json()["error"]


def test_python_logs_the_first_and_the_tenth_text(
    tiny: Tiny, caplog: pytest.LogCaptureFixture
) -> None:
    request_context._noticed.clear()
    with FillMask(tiny.path, threads=1) as model, caplog.at_level(logging.WARNING, "fillmask"):
        for _ in range(12):
            model.fill(f"xyz {KNOWN}")
    sentence = "inputs has 1 unknown tokens of 4, which the vocabulary lacks."
    assert caplog.messages == [sentence, f"{sentence} (10 such texts)"]


def test_bundle_decides_about_special_tokens(bundle_copy: Path) -> None:
    description = bundle_copy / "bundle.json"
    fields = json.loads(description.read_text())
    for mode, status in (("refuse", 422), ("read", 200)):
        description.write_text(json.dumps(fields | {"special_tokens": mode}))
        with serving(bundle_copy) as client:
            answer = client.post("/fill-mask", json={"inputs": f"{KNOWN} [SEP]"})
            assert answer.status_code == status
            assert "x-warnings" not in answer.headers
            if status == 422:
                error = answer.json()["error"]
                assert 'the special token "[SEP]", which this bundle does not read' in error
