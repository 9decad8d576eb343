"""The field `options` of Hugging Face's older clients on every path that accepts it."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.refusal import check_refusal

OPTIONS = {"use_cache": False, "wait_for_model": True, "use_gpu": None}
FILL = {"inputs": "the [MASK]"}


@pytest.mark.parametrize("path", ["/fill-mask", "/", "/models/tiny"])
@pytest.mark.parametrize("options", [None, {}, OPTIONS, dict.fromkeys(OPTIONS, True)])
def test_options_have_no_effect(path: str, options: Any, client: TestClient) -> None:
    plain = client.post(path, json=FILL)
    assert client.post(path, json=FILL | {"options": options}).json() == plain.json()
    assert plain.is_success


def test_other_formats_have_no_options(client: TestClient) -> None:
    check_refusal(
        client.post("/score", json={"inputs": "the dog", "options": {}}),
        422,
        'Unknown field "options" in the body; allowed: inputs, parameters, on_error.',
    )
    check_refusal(
        client.post("/v1/models/tiny:predict", json={"instances": ["[MASK]"], "options": {}}),
        422,
        'Unknown field "options" in the body; allowed: instances, parameters, on_error.',
    )
