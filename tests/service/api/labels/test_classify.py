"""Requests to /classify: choice of the model, format of the response, limits and metrics."""

from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import BatchOutputs
from tests.service.api.labels.bundles import LABELS
from tests.service.responses import check_refusal, post

PAIR = {"text": "the cat sat", "text_pair": "the dog lay by the door"}


def labels_of(client: TestClient, inputs: object, **parameters: object) -> Any:
    """Return the response to a classification request, which must succeed."""
    return post(client, "/classify", inputs=inputs, parameters=parameters)


def test_a_single_text_has_a_list_with_one_list(client: TestClient) -> None:
    [labels] = labels_of(client, "the cat")
    assert {label["label"] for label in labels} == set(LABELS)
    assert all(set(label) == {"label", "score"} for label in labels)
    assert sum(label["score"] for label in labels) == pytest.approx(1)
    scores = [label["score"] for label in labels]
    assert scores == sorted(scores, reverse=True)
    assert labels_of(client, {"text": "the cat"}) == [labels]
    assert labels_of(client, ["the cat"]) == [labels]
    assert labels_of(client, "the cat", top_k=None, function_to_apply=None) == [labels]
    [other] = labels_of(client, PAIR)
    assert other != labels


def test_each_text_may_have_its_parameters(client: TestClient) -> None:
    body = {
        "inputs": ["the cat", PAIR, "the dog"],
        "parameters": [{"top_k": 1}, None, {"function_to_apply": "none", "top_k": 2.0}],
    }
    first, second, third = client.post("/classify", json=body).json()
    assert [len(first), len(second), len(third)] == [1, 3, 2]
    assert second == labels_of(client, PAIR)[0]
    assert [third] == labels_of(client, "the dog", function_to_apply="none", top_k=2)


@pytest.fixture
def logits(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Logits of each text, which a test puts in place of the model's."""
    batcher = client.app.state.models.get("labels").batcher  # type: ignore[attr-defined]
    run, given = batcher._run, list[float]()

    def replace(batch: Batch) -> BatchOutputs:
        outputs: BatchOutputs = run(batch)
        outputs.pooled[:] = given
        return outputs

    monkeypatch.setattr(batcher, "_run", replace)
    return given


@pytest.mark.parametrize(("function", "scores"), [("softmax", [1, 0, 0]), ("sigmoid", [1, 0.5, 0])])
def test_large_logits_do_not_overflow(
    function: str, scores: list[float], client: TestClient, logits: list[float]
) -> None:
    logits[:] = 1e6, 0, -1e6
    [found] = labels_of(client, "the", function_to_apply=function)
    assert [one["score"] for one in found] == scores


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_wrong_logit_is_an_internal_error(
    wrong: float, client: TestClient, logits: list[float]
) -> None:
    # The client gets only the request id.
    logits[:] = 0, wrong, 0
    answer = client.post("/classify", json={"inputs": "the"}, headers={"X-Request-ID": "mine-2"})
    assert answer.status_code == 500
    assert " the request id mine-2." in answer.json()["error"]
    assert "the model returns NaN or infinity" not in answer.text


def test_special_tokens_in_a_pair_are_ordinary_text(client: TestClient) -> None:
    # A [SEP] in a text becomes brackets and letters, so it does not end the first text.
    labels, plain = (
        labels_of(
            client,
            [
                {"text": f"the {sep} cat", "text_pair": "the dog"},
                {"text": "the", "text_pair": f"cat {sep} the dog"},
                f"the {sep} cat",
            ],
        )
        for sep in ("[SEP]", "( SEP )")
    )
    assert labels == plain  # all are unknown words


def test_invalid_texts_are_reported(client: TestClient) -> None:
    # With on_error "report", the other texts and pairs still get labels.
    long = {"text": "the cat sat " * 9, "text_pair": "the dog"}
    body = {"inputs": ["\u200b", "the cat", long, PAIR], "on_error": "report"}
    answer = client.post("/classify", json=body)
    assert answer.status_code == 200
    first, second, third, last = answer.json()
    assert len(second) == len(last) == 3
    assert third["error"].startswith("inputs[2] must have at most 24 tokens, special tokens")
    assert first == {"error": "inputs[0] has no tokens; write at least one word."}
    alone = client.post("/classify", json={"inputs": "\u200b", "on_error": "report"})
    check_refusal(alone, 422, "inputs has no tokens; write at least one word.")
