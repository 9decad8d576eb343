"""The field `options` of Hugging Face's older clients on every path that accepts it."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

OPTIONS = {"use_cache": False, "wait_for_model": True, "use_gpu": None}
FILL = {"inputs": "the [MASK]"}


@pytest.mark.parametrize("path", ["/fill-mask", "/", "/models/tiny"])
@pytest.mark.parametrize("options", [None, {}, OPTIONS])
def test_options_have_no_effect(path: str, options: Any, client: TestClient) -> None:
    plain = client.post(path, json=FILL)
    assert client.post(path, json=FILL | {"options": options}).json() == plain.json()
    assert plain.is_success
