"""Lists of texts, with parameters and errors per text."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.responses import post
from tests.service.serving import serving
from tests.service.tiny import Tiny

TEXT = "the dog [MASK] at the cat"
LIST_OF_WAYS: list[dict[str, Any] | None] = [
    {"top_k": 2},
    None,
    {"targets": ["dog", "walks"]},
    {"granularity": "word", "max_word_tokens": 2},
    {"strategy": "joint", "top_k": 3},
    {"top_k": 2},
]
NO_MASK = "has no mask; write [MASK] in place of a word."


@pytest.fixture(scope="module")
def client(tiny: Tiny) -> Iterator[TestClient]:
    """Client of a service with the usual limits."""
    with serving(tiny.path, threads=2) as test_client:
        yield test_client


def fill(client: TestClient, path: str = "/fill-mask", **body: Any) -> Any:
    """Send a request and return the parsed response."""
    return post(client, path, **body)


def rounded(value: Any) -> Any:
    """Round the scores of a response, because float32 sums depend on the order of the terms."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def test_each_text_has_its_parameters(client: TestClient) -> None:
    # Each text gets the same fills as in a separate request.
    texts = [TEXT, "a [MASK]", TEXT, TEXT, "the [MASK] and [MASK]", "[MASK] and [MASK]"]
    answer = fill(client, inputs=texts, parameters=LIST_OF_WAYS)
    for text, parameters, own in zip(texts, LIST_OF_WAYS, answer, strict=True):
        alone = fill(client, inputs=text, parameters=parameters)
        assert rounded(own) == rounded(alone)


def test_bad_texts_are_reported_beside_the_others(client: TestClient) -> None:
    # Each error has the index of its text.
    texts = ["no mask", TEXT, "", f"{'dog ' * 40}[MASK]", "the [MASK]"]
    body: dict[str, Any] = {"inputs": texts, "parameters": {"top_k": 2}}
    answer = fill(client, on_error="report", **body)
    good = fill(client, inputs=[TEXT, "the [MASK]"], parameters={"top_k": 2})
    assert answer[0] == {"error": f"inputs[0] {NO_MASK}"}
    assert answer[2] == {"error": f"inputs[2] {NO_MASK}"}
    assert answer[3]["error"].startswith("inputs[3] must have at most 32 tokens, special tokens")
    assert [answer[1], answer[4]] == good
    for on_error in ("error", None):
        refused = client.post("/fill-mask", json=body | {"on_error": on_error})
        assert refused.status_code == 422
        assert refused.json() == answer[0]


def test_targets_that_cannot_be_ranked_are_reported_behind_the_others(client: TestClient) -> None:
    # The scores of other targets do not change.
    good = ["dog", "walks"]
    bad = ["Timbuktu", "Dog", "[SEP]"]
    body = {"inputs": "the [MASK] and [MASK]", "on_error": "report"}
    answer = fill(
        client, **body, parameters={"targets": ["dog", "Timbuktu", "Dog", "walks", "[SEP]"]}
    )
    expected = fill(client, **body, parameters={"targets": good})
    for mask, alone in zip(answer, expected, strict=True):
        assert mask[:2] == alone
        assert [one["token_str"] for one in mask[2:]] == bad
        assert [sorted(one) for one in mask[2:]] == [["error", "token_str"]] * 3
    reasons = [one["error"] for one in answer[0][2:]]
    assert reasons[0] == (
        'The target "Timbuktu" has characters that the model\'s vocabulary lacks; remove the '
        "target."
    )
    assert reasons[1] == 'The targets "dog" and "Dog" have the same tokens; remove one of them.'
    top = fill(client, **body, parameters={"targets": [*good, *bad], "top_k": 1})
    assert [one["token_str"] for one in top[0][1:]] == bad
    # with no valid target, the response has the error of the text in place of its fills
    each = [{"targets": ["Timbuktu"]}, {"targets": ["dog"]}]
    none, one = fill(client, inputs=[TEXT, TEXT], parameters=each, on_error="report")
    assert none["error"].startswith('The target "Timbuktu" has characters')
    assert [fill["token_str"] for fill in one] == ["dog"]


def test_scores_have_parameters_for_each_and_report(client: TestClient) -> None:
    # Ranks count only scored texts.
    texts = ["She walks", "She [MASK]", "She walks", ""]
    each = [{"variant": "original"}, None, None, None]
    answer = fill(client, "/score", inputs=texts, parameters=each, on_error="report")
    alone = [
        fill(client, "/score", inputs=text, parameters=parameters)
        for text, parameters in zip(texts[::2], each[::2], strict=True)
    ]
    assert [one["tokens"] for one in answer[::2]] == [one["tokens"] for one in alone]
    assert sorted(one["rank"] for one in answer[::2]) == [1, 2]
    assert answer[1] == {"error": "inputs[1] has a mask; remove [MASK] to score the text."}
    assert answer[3] == {"error": "inputs[3] has no tokens; write at least one word."}
    refused = client.post("/score", json={"inputs": "[MASK]", "on_error": "report"})
    assert refused.status_code == 422


def test_predictions_report(client: TestClient) -> None:
    # The response uses the terms of the V1 protocol, such as `predictions`.
    body = {"instances": ["no mask", TEXT], "parameters": [{}, {"top_k": 1}], "on_error": "report"}
    answer = fill(client, "/v1/models/tiny:predict", **body)
    assert answer["predictions"][0] == {"error": f"instances[0] {NO_MASK}"}
    assert len(answer["predictions"][1]) == 1
