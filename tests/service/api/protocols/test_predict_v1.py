"""Requests of the V1 inference protocol (`:predict`)."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

PREDICT = "/v1/models/tiny:predict"
TEXTS = ["Paris is the [MASK] of France.", "The [MASK] barked at the [MASK]."]


@pytest.mark.parametrize("path", [PREDICT, "/v1/models/tiny%3Apredict"])
def test_predictions_are_the_fills(client: TestClient, path: str) -> None:
    # The colon in the path may be percent-encoded.
    parameters = {"top_k": 2}
    answer = client.post(path, json={"instances": TEXTS, "parameters": parameters})
    assert answer.status_code == 200
    expected = client.post("/fill-mask", json={"inputs": TEXTS, "parameters": parameters})
    assert answer.json() == {"predictions": expected.json()}


def test_one_instance_is_a_list_too(client: TestClient) -> None:
    answer = client.post(PREDICT, json={"instances": TEXTS[:1]})
    assert len(answer.json()["predictions"]) == 1


def test_models(client: TestClient) -> None:
    assert client.get("/v1/models").json() == {"models": ["tiny"]}
    assert client.get("/v1/models/tiny").json() == {"name": "tiny", "ready": True}
    for answer in (client.get("/v1/models/other"), client.post("/v1/models/other:predict")):
        assert answer.status_code == 404
        assert answer.json()["error"] == 'Unknown model "other"; use a served model: "tiny".'


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ([], "The body must be a JSON object (got a list)."),
        ({}, "instances is missing; it must be a list of texts or pairs."),
        ({"instances": "a [MASK]"}, 'instances must be a list of texts or pairs (got "a [MASK]").'),
        ({"instances": []}, "instances is empty"),
        (
            {"instances": [{"text": 5}]},
            "instances[0].text must be a non-blank text (got 5).",
        ),
        ({"instances": ["a [MASK]", "b"]}, "instances[1] has no mask"),
        ({"instances": ["[MASK]"], "signature_name": "x"}, 'Unknown field "signature_name" in the'),
        ({"instances": ["[MASK]"], "parameters": {"top_k": 0}}, "top_k must be"),
    ],
)
def test_bad_requests(client: TestClient, body: Any, reason: str) -> None:
    # The message uses the protocol's terms, such as `instances`.
    answer = client.post(PREDICT, json=body)
    assert answer.status_code == 422
    assert reason in answer.json()["error"]
