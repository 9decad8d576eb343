"""Starts and imports of the application."""

import pytest

from fillmask.errors import SettingsError
from tests.service.server_process import run_process
from tests.service.serving import serving
from tests.service.tiny import Tiny


def test_golden_prompts_are_not_bound_by_the_users_limits(tiny: Tiny) -> None:
    # The settings may limit requests to one mask and one fill.
    with serving(tiny.path, max_masks=1, max_top_k=1):
        pass


def test_a_text_must_fit_into_the_queue(tiny: Tiny) -> None:
    # The limit of waiting tokens must allow the longest text.
    refusal = r"max_waiting_tokens must be at least 32, .* \(got 31\)"
    with pytest.raises(SettingsError, match=refusal), serving(tiny.path, max_waiting_tokens=31):
        pass


def test_top_k_is_bound_by_the_vocabulary(tiny: Tiny) -> None:
    with serving(tiny.path) as client:
        max_top_k = client.get("/info").json()["limits"]["max_top_k"]
        assert max_top_k == len(tiny.vocabulary) - 5
        body = {"inputs": "[MASK]", "parameters": {"top_k": max_top_k}}
        assert len(client.post("/fill-mask", json=body).json()) == max_top_k


PROBE = """
import sys
from pathlib import Path
from fastapi.testclient import TestClient
from fillmask.app import create_app
from fillmask.settings import Settings
with TestClient(create_app(Settings(bundle=Path(sys.argv[1]), threads=1))) as client:
    assert client.post("/fill-mask", json={"inputs": "[MASK]"}).status_code == 200
unwanted = {"torch", "onnx", "safetensors", "transformers", "fillmask_model", "fillmask_export"}
print(sorted(unwanted & set(sys.modules)))
"""


@pytest.mark.processes
def test_no_torch(tiny: Tiny) -> None:
    # The process has answered a request before the check of its imports.
    assert run_process(PROBE, str(tiny.path)).stdout == "[]\n"
