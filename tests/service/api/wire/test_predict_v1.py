"""Requests of the V1 inference protocol (`:predict`)."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

MASKED = ["Paris is the [MASK] of France.", "The [MASK] barked at the [MASK]."]
PAIRS = ["the [MASK]", {"text": "the [MASK]", "text_pair": "the dog"}]


@pytest.mark.parametrize(
    ("name", "separator", "texts"),
    [
        ("tiny", ":", MASKED),
        ("tiny", ":", MASKED[:1]),
        ("tiny", "%3A", MASKED),  # the colon may be percent-encoded
        ("labels", ":", PAIRS),
        ("both", ":", PAIRS),
    ],
)
def test_predictions_are_those_of_the_first_task(
    every_model: TestClient, name: str, separator: str, texts: list[Any]
) -> None:
    own = {"parameters": {"top_k": 2}}
    answer = every_model.post(
        f"/v1/models/{name}{separator}predict", json={"instances": texts, **own}
    )
    assert answer.status_code == 200
    expected = every_model.post(f"/models/{name}", json={"inputs": texts, **own})
    assert answer.json() == {"predictions": expected.json()}


def test_models(client: TestClient) -> None:
    assert client.get("/v1/models").json() == {"models": ["tiny"]}
    assert client.get("/v1/models/tiny").json() == {"name": "tiny", "ready": True}
    for answer in (client.get("/v1/models/other"), client.post("/v1/models/other:predict")):
        assert answer.status_code == 404
        assert answer.json()["error"] == 'Unknown model "other"; use a served model: "tiny".'
