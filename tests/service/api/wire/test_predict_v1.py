"""Requests of the V1 inference protocol (`:predict`)."""

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
    answer = client.post(path, json={"instances": TEXTS[:1]})
    assert len(answer.json()["predictions"]) == 1


def test_models(client: TestClient) -> None:
    assert client.get("/v1/models").json() == {"models": ["tiny"]}
    assert client.get("/v1/models/tiny").json() == {"name": "tiny", "ready": True}
    for answer in (client.get("/v1/models/other"), client.post("/v1/models/other:predict")):
        assert answer.status_code == 404
        assert answer.json()["error"] == 'Unknown model "other"; use a served model: "tiny".'


def test_v1_runs_the_first_task(every_model: TestClient) -> None:
    pair = {"text": "the [MASK]", "text_pair": "the dog"}
    texts = ["the [MASK]", pair]
    for name in ("labels", "both"):
        answer = every_model.post(f"/v1/models/{name}:predict", json={"instances": texts})
        expected = every_model.post(f"/models/{name}", json={"inputs": texts})
        assert answer.json() == {"predictions": expected.json()}
