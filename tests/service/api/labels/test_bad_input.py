"""Invalid pairs and classification requests, with the status and message of each case."""

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.settings import Settings
from tests.service.refusal import check_refusal

PAIR = 'a pair {"text", "text_pair"}'
NOT_EMPTY = "must be a non-blank text (got"
JSON = {"content-type": "application/json"}
BOTH = "/models/both"
CLASSIFY, SCORE = f"{BOTH}/classify", f"{BOTH}/score"
TOP_K = "top_k must be a whole number of at least 1 (got"
FUNCTION = "function_to_apply must be softmax or sigmoid or none (got"
NO_PAIRS = "is a pair, but this model reads only single texts; remove text_pair."
LONG = "the cat sat " * 9
CUT = "shorten it or set on_long_text to truncate."


def pair(text: object = "the cat", text_pair: object = "the dog") -> dict[str, object]:
    return {"text": text, "text_pair": text_pair}


# name -> (path, inputs, parameters, message), with status 422
INVALID: dict[str, tuple[str, Any, Any, str]] = {
    # pairs of wrong shape, on every endpoint
    "classify nothing": (
        CLASSIFY,
        None,
        None,
        f"inputs must be a text, {PAIR} or a list of these (got null).",
    ),
    "classify an empty text": (
        CLASSIFY,
        "",
        None,
        "inputs has no tokens; write at least one word.",
    ),
    "a list of lists": (
        CLASSIFY,
        ["the", ["the cat", "the dog"]],
        None,
        f"inputs[1] must be a text or {PAIR} (got a list).",
    ),
    "unknown field": (
        CLASSIFY,
        pair() | {"label": "sport"},
        None,
        'Unknown field "label" in inputs; allowed: text, text_pair.',
    ),
    "unknown field in a list": (
        BOTH,
        ["a [MASK]", {"text": "a [MASK]", "pair": "b"}],
        None,
        'Unknown field "pair" in inputs[1]; allowed: text, text_pair.',
    ),
    "no text": (
        CLASSIFY,
        {"text_pair": "the dog"},
        None,
        "inputs.text is missing; it must be a non-blank text.",
    ),
    "an empty object": (
        SCORE,
        ["the", {}],
        None,
        "inputs[1].text is missing; it must be a non-blank text.",
    ),
    "text a number": (CLASSIFY, pair(text=5), None, f"inputs.text {NOT_EMPTY} 5)."),
    "text null": (CLASSIFY, pair(text=None), None, f"inputs.text {NOT_EMPTY} null)."),
    "text empty": (SCORE, pair(text=""), None, f'inputs.text {NOT_EMPTY} "").'),
    "text_pair empty": (BOTH, pair("[MASK]", ""), None, f'inputs.text_pair {NOT_EMPTY} "").'),
    "text_pair white space": (
        CLASSIFY,
        ["the", "the", "the", pair(text_pair=" \n")],
        None,
        rf'inputs[3].text_pair {NOT_EMPTY} " \n").',
    ),
    "text_pair a list": (
        SCORE,
        pair(text_pair=["the dog"]),
        None,
        f"inputs.text_pair {NOT_EMPTY} a list).",
    ),
    # models without pairs
    "a model without pairs": ("/fill-mask", pair("[MASK]"), None, f"inputs {NO_PAIRS}"),
    "a model without pairs, scores": (
        "/score",
        ["the dog", pair()],
        None,
        f"inputs[1] {NO_PAIRS}",
    ),
    # lengths
    "pair too long": (
        CLASSIFY,
        pair(LONG, "the dog"),
        None,
        f"inputs must have at most 24 tokens, special tokens included (got 32); {CUT}",
    ),
    "second text too long": (
        BOTH,
        ["a [MASK]", pair("a [MASK]", LONG)],
        None,
        (
            "inputs[1] must have at most 24 tokens, special tokens included (got 32); shorten it "
            "or set on_long_text to window."
        ),
    ),
    "pair of too many characters": (
        SCORE,
        pair("the dog", " " * 2000 + "a"),
        None,
        (
            "inputs must have at most 1536 characters (got 2009), because the model reads at "
            "most 24 tokens; shorten it."
        ),
    ),
    "second text too long for windows": (
        BOTH,
        pair("a [MASK]", LONG),
        {"on_long_text": "window"},
        "inputs.text_pair must have at most 12 tokens with windows (got 27).",
    ),
    "mask in the second text of a windowed pair": (
        BOTH,
        pair(LONG, "a [MASK]"),
        {"on_long_text": "window"},
        (
            "inputs exceeds the model's input and has a mask in text_pair; remove this "
            "mask or shorten the pair."
        ),
    ),
    "windowed pair of too many characters": (
        BOTH,
        pair("[MASK]", "a" * 200_000),
        {"on_long_text": "window"},
        "inputs must have at most 200000 characters with windows (got 200007).",
    ),
    # tokens of pairs
    "no mask in either text": (
        BOTH,
        pair(),
        None,
        (
            'inputs has no mask; write [MASK] in place of a word; model "both" has the task '
            "fill-mask (POST /fill-mask, POST /score) and text-classification (POST /classify)."
        ),
    ),
    "a mask to score": (
        SCORE,
        ["the", pair("the", "a [MASK]")],
        None,
        "inputs[1] has a mask; remove [MASK] to score the text.",
    ),
    "no tokens": (
        CLASSIFY,
        ["the", "\u200b"],
        None,
        "inputs[1] has no tokens; write at least one word.",
    ),
    "too many masks in pairs": (
        BOTH,
        [pair("[MASK] [MASK]", "[MASK] [MASK]")] * 2,
        None,
        "The request must have at most 6 masks (got 8); send fewer or raise FILLMASK_MAX_MASKS.",
    ),
    "too many pairs": (
        CLASSIFY,
        [pair()] * 5,
        None,
        "inputs must have at most 4 texts (got 5); send fewer or raise FILLMASK_MAX_TEXTS.",
    ),
    # parameters of /classify
    "top_k zero": (CLASSIFY, "the", {"top_k": 0}, f"{TOP_K} 0)."),
    "top_k negative": (CLASSIFY, "the", {"top_k": -1}, f"{TOP_K} -1)."),
    "top_k a fraction": (CLASSIFY, "the", {"top_k": 1.5}, f"{TOP_K} 1.5)."),
    "top_k true": (CLASSIFY, "the", {"top_k": True}, f"{TOP_K} true)."),
    "top_k a text": (CLASSIFY, "the", {"top_k": "2"}, f'{TOP_K} "2").'),
    "unknown function": (
        CLASSIFY,
        "the",
        {"function_to_apply": "argmax"},
        f'{FUNCTION} "argmax").',
    ),
    "function a list": (CLASSIFY, "the", {"function_to_apply": ["none"]}, f"{FUNCTION} a list)."),
    "a parameter of fills": (
        CLASSIFY,
        "the",
        {"targets": ["dog"]},
        'Unknown field "targets" in parameters; allowed: top_k, function_to_apply, on_long_text.',
    ),
    "a parameter of labels": (
        BOTH,
        "a [MASK]",
        {"function_to_apply": "none"},
        (
            'Unknown field "function_to_apply" in parameters; allowed: top_k, targets, '
            "granularity, max_word_tokens, strategy, order, on_long_text."
        ),
    ),
    "parameters of a text wrong": (
        CLASSIFY,
        ["the", pair()],
        [None, {"top_k": 0}],
        "parameters[1].top_k must be a whole number of at least 1 (got 0).",
    ),
    "parameters of a pair a list": (
        CLASSIFY,
        pair(),
        [{}],
        "parameters is a list but inputs is one text; send one object.",
    ),
    # wrong task
    "a model without labels": (
        "/models/tiny/classify",
        "the dog",
        None,
        (
            'Model "tiny" does not have the task text-classification; use a model with this task: '
            '"labels", "both".'
        ),
    ),
    "a model without scores": (
        "/models/labels/score",
        "the dog",
        None,
        (
            'Model "labels" does not have the task fill-mask; use a model with this task: "tiny", '
            '"both".'
        ),
    ),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_request(case: str, client: TestClient) -> None:
    path, inputs, parameters, message = INVALID[case]
    answer = client.post(path, json={"inputs": inputs, "parameters": parameters})
    check_refusal(answer, 422, message)


@pytest.mark.parametrize(("path", "name"), [("/models/none/classify", "none"), ("/models/x", "x")])
def test_unknown_model(path: str, name: str, client: TestClient) -> None:
    served = '"tiny", "labels", "both"'
    message = f'Unknown model "{name}"; use a served model: {served}.'
    check_refusal(client.post(path, json={"inputs": "the"}), 404, message)


def test_other_errors(client: TestClient) -> None:
    answer = client.post("/classify", content=b'{"inputs": ', headers=JSON)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("The body is not valid JSON")
    answer = client.post("/classify", content=b'{"inputs": "a"}')
    assert answer.status_code == 415
    answer = client.get("/classify")
    message = "The method GET is not allowed for this path; use POST."
    assert (answer.status_code, answer.json()["error"]) == (405, message)
    answer = client.post("/classify", json={"inputs": "a" * 2**20})
    assert answer.status_code == 413


def test_a_task_that_no_model_has(labels: Path, tiny: Any) -> None:
    with TestClient(create_app(Settings(bundle=labels, threads=1))) as client:
        message = 'Model "labels" does not have the task fill-mask; '
        message += "use a task of this model: text-classification."
        for path in ("/fill-mask", "/score"):
            check_refusal(client.post(path, json={"inputs": "[MASK]"}), 422, message)
        assert client.post("/", json={"inputs": "the"}).is_success
    with TestClient(create_app(Settings(bundle=tiny.path, threads=1))) as client:
        message = 'Model "tiny" does not have the task text-classification; '
        message += "use a task of this model: fill-mask."
        check_refusal(client.post("/classify", json={"inputs": "the"}), 422, message)


def test_special_tokens_in_a_pair_are_ordinary_text(client: TestClient) -> None:
    # A [SEP] in a text becomes brackets and letters, so it does not end the first text.
    inputs = [pair("the [SEP] cat"), pair("the", "cat [SEP] the dog"), "the [SEP] cat"]
    plain = [pair("the ( SEP ) cat"), pair("the", "cat ( SEP ) the dog"), "the ( SEP ) cat"]
    labels, others = (
        client.post(CLASSIFY, json={"inputs": each}).json() for each in (inputs, plain)
    )
    assert labels == others  # all are unknown words


def test_invalid_texts_are_reported(client: TestClient) -> None:
    # With on_error "report", the other texts and pairs still get labels.
    inputs = ["\u200b", "the cat", pair(LONG), pair()]
    body = {"inputs": inputs, "on_error": "report"}
    answer = client.post(CLASSIFY, json=body)
    assert answer.status_code == 200
    first, second, third, last = answer.json()
    assert len(second) == len(last) == 3
    assert third == {
        "error": f"inputs[2] must have at most 24 tokens, special tokens included (got 32); {CUT}"
    }
    assert first == {"error": "inputs[0] has no tokens; write at least one word."}
    alone = client.post(CLASSIFY, json={"inputs": "\u200b", "on_error": "report"})
    check_refusal(alone, 422, "inputs has no tokens; write at least one word.")
    fills = client.post(BOTH, json={"inputs": [pair("[MASK]"), pair()], "on_error": "report"})
    assert fills.json()[1] == {"error": "inputs[1] has no mask; write [MASK] in place of a word."}
