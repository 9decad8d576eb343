"""KServe's own client with a service process whose model has an alias.

In KServe the alias is the name of the InferenceService. The client has only asynchronous methods.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.environments import python_of
from tests.service.server_process import start_process
from tests.service.tiny import Tiny

# needs an environment of its own, which only make test-slow installs
pytestmark = [pytest.mark.processes, pytest.mark.slow]
SCRIPT = Path(__file__).with_name("kserve_calls.py")
ALIAS = "fillmask"
TEXTS = ["Paris is the [MASK] of France.", "The [MASK] barked at the [MASK]."]
CONTENT_TYPES = {"v2 in JSON": "application/json", "v2 in binary": "application/octet-stream"}
versions_of_v2 = pytest.mark.parametrize("version", CONTENT_TYPES)


@pytest.fixture(scope="module")
def results(tiny: Tiny) -> dict[str, Any]:
    """Results of the calls, with the response of /fill-mask to the same texts."""
    with start_process("--bundle", str(tiny.path), "--served-name", ALIAS) as (_, url):
        done = subprocess.run(
            [*python_of("kserve"), SCRIPT, url, ALIAS, *TEXTS],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=os.environ | {"NO_PROXY": "127.0.0.1"},
        )
        body = {"inputs": TEXTS, "parameters": {"top_k": 3}}
        expected = httpx.post(f"{url}/fill-mask", json=body).json()
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "expected": expected}


def test_v1(results: dict[str, Any]) -> None:
    v1 = results["v1"]
    assert v1["live"] is True
    assert v1["ready"] is True
    assert v1["response"] == {"predictions": results["expected"]}
    assert v1["no mask"].startswith("instances has no mask; write")
    assert "'422 " in v1["no mask"]
    assert v1["other"].startswith('Unknown model "other"; use a served model: "tiny", "fillmask".')
    assert "'404 " in v1["other"]


@versions_of_v2
def test_v2_state(results: dict[str, Any], version: str) -> None:
    v2 = results[version]
    assert v2["live"] is True
    assert v2["server ready"] is True
    assert v2["ready"] is True
    assert v2["other ready"] is False


@versions_of_v2
def test_v2_infer(results: dict[str, Any], version: str) -> None:
    # The client sends the name of the model in the body, which may also be null.
    v2 = results[version]
    assert v2["content type"] == CONTENT_TYPES[version]
    for response in (v2["response"], v2["unnamed"]):
        assert response["id"] == "seven"
        assert response["model_name"] == ALIAS
        data = {output["name"]: output["data"] for output in response["outputs"]}
        fills = [
            fill for mask in (results["expected"][0], *results["expected"][1]) for fill in mask
        ]
        assert data["text_index"] == [0, 1, 1]
        for name in ("token", "token_str", "sequence"):
            assert data[name] == [fill[name] for fill in fills]
        scores = [fill["score"] for fill in fills]
        np.testing.assert_allclose(data["score"], scores, rtol=1e-6)


@versions_of_v2
def test_v2_errors(results: dict[str, Any], version: str) -> None:
    v2 = results[version]
    assert v2["no mask"].startswith("text has no mask; write")
    assert v2["other"].startswith(
        "model_name must be null or a name of the model in the path, "
        '"tiny" or "fillmask" (got "other").'
    )
    for message in (v2["no mask"], v2["other"]):
        assert "'422 " in message
