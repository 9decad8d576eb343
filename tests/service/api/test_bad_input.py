"""Invalid input in the request body, with the expected status and message of each case."""

import gzip
import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.refusal import check_refusal

JSON = {"content-type": "application/json"}
PAIR = 'a pair {"text", "text_pair"}'
LIST = f"it must be a text, {PAIR} or a list of these."
FEWER = "send fewer or raise FILLMASK_MAX_TEXTS."
WINDOW = "shorten it or set on_long_text to window."
TOP_K = "top_k must be a whole number from 1 to 20 (got"
TARGETS = "targets must be a list of 1 to 10000 texts (got"
NO_OBJECT = "The body must be a JSON object (got"
NO_TEXT = f"inputs must be a text, {PAIR} or a list of these (got"
NO_MASK = "inputs has no mask; write [MASK] in place of a word."
NOT_A_TEXT, NOT_EMPTY = f"must be a text or {PAIR} (got", "must be a non-blank text (got"
DEEP = b'{"inputs": "[MASK]", "parameters": {"top_k": %s}}' % (b"[" * 900 + b"]" * 900)
FIELDS = "allowed: inputs, parameters, on_error, options."


def parameters(**values: Any) -> dict[str, Any]:
    """Return a request body with these parameters."""
    return {"inputs": "the [MASK]", "parameters": values}


# name -> (body as JSON or bytes, message), with status 422
INVALID: dict[str, tuple[Any, str]] = {
    # JSON of another shape
    "a number": (5, f"{NO_OBJECT} 5)."),
    "a list": ([], f"{NO_OBJECT} a list)."),
    "a text": ("the [MASK]", f'{NO_OBJECT} "the [MASK]").'),
    "null": (None, f"{NO_OBJECT} null)."),
    "unknown field": (
        {"inputs": "[MASK]", "option": {}},
        f'Unknown field "option" in the body; {FIELDS}',
    ),
    "unknown field, long": (
        {"inputs": "[MASK]", "x" * 500: 1},
        f'Unknown field "{"x" * 77}…" in the body; {FIELDS}',
    ),
    "options a text": (
        {"inputs": "[MASK]", "options": "x"},
        'options must be a JSON object (got "x").',
    ),
    "unknown option": (
        {"inputs": "[MASK]", "options": {"use_cache": True, "retry": 1}},
        'Unknown field "retry" in options; allowed: use_cache, wait_for_model, use_gpu.',
    ),
    "option a number": (
        {"inputs": "[MASK]", "options": {"use_gpu": None, "wait_for_model": 1}},
        "options.wait_for_model must be true or false (got 1).",
    ),
    "field in another case": (
        {"inputs": "[MASK]", "Parameters": {}},
        f'Unknown field "Parameters" in the body; {FIELDS}',
    ),
    "unknown parameter": (
        parameters(topk=3),
        (
            'Unknown field "topk" in parameters; allowed: top_k, targets, granularity, '
            "max_word_tokens, strategy, order, on_long_text."
        ),
    ),
    "parameters a list": (
        {"inputs": "[MASK]", "parameters": []},
        "parameters is a list but inputs is one text; send one object.",
    ),
    "parameters a text": (
        {"inputs": "[MASK]", "parameters": "top_k"},
        'parameters must be a JSON object (got "top_k").',
    ),
    "parameters of too few texts": (
        {"inputs": ["[MASK]", "[MASK]"], "parameters": [{}]},
        "parameters must have one object per text of inputs, 2 in total (got 1).",
    ),
    "parameters of too many texts": (
        {"inputs": ["[MASK]"], "parameters": [{}] * 1000},
        f"parameters must have at most 4 objects, one per text (got 1000); {FEWER}",
    ),
    "parameters of a text a list": (
        {"inputs": ["[MASK]", "[MASK]"], "parameters": [{}, []]},
        "parameters[1] must be a JSON object (got a list).",
    ),
    "parameters of a text wrong": (
        {"inputs": ["[MASK]", "[MASK]"], "parameters": [None, {"top_k": 0}]},
        "parameters[1].top_k must be a whole number from 1 to 20 (got 0).",
    ),
    "parameters of a text unknown": (
        {"inputs": ["[MASK]"], "parameters": [{"k": 0}]},
        (
            'Unknown field "k" in parameters[0]; allowed: top_k, targets, granularity, '
            "max_word_tokens, strategy, order, on_long_text."
        ),
    ),
    "target of a text empty": (
        {"inputs": ["[MASK]"], "parameters": [{"targets": [""]}]},
        f'parameters[0].targets[0] {NOT_EMPTY} "").',
    ),
    # on_error
    "on_error unknown": (
        {"inputs": "[MASK]", "on_error": "ignore"},
        'on_error must be error or report (got "ignore").',
    ),
    "on_error true": (
        {"inputs": "[MASK]", "on_error": True},
        "on_error must be error or report (got true).",
    ),
    "one text, reported": (
        {"inputs": "[mask]", "on_error": "report"},
        NO_MASK,
    ),
    # inputs
    "no inputs": ({}, f"inputs is missing; {LIST}"),
    "only parameters": ({"parameters": {"top_k": 1}}, f"inputs is missing; {LIST}"),
    "inputs null": ({"inputs": None}, f"{NO_TEXT} null)."),
    "inputs a number": ({"inputs": 5}, f"{NO_TEXT} 5)."),
    "inputs an object": (
        {"inputs": {"texts": "[MASK]"}},
        'Unknown field "texts" in inputs; allowed: text, text_pair.',
    ),
    "inputs empty": ({"inputs": ""}, NO_MASK),
    "inputs no texts": ({"inputs": []}, f"inputs is empty; {LIST}"),
    "a text empty": (
        {"inputs": ["[MASK]", ""]},
        "inputs[1] has no mask; write [MASK] in place of a word.",
    ),
    "a text null": ({"inputs": [None, "[MASK]"]}, f"inputs[0] {NOT_A_TEXT} null)."),
    "a text a list": ({"inputs": [["[MASK]"]]}, f"inputs[0] {NOT_A_TEXT} a list)."),
    "too many texts": (
        {"inputs": ["[MASK]"] * 5},
        f"inputs must have at most 4 texts (got 5); {FEWER}",
    ),
    "no mask": ({"inputs": "Paris is the capital."}, NO_MASK),
    "only white space": ({"inputs": "  \n"}, NO_MASK),
    "mask of another model": ({"inputs": "Paris is the <mask>."}, NO_MASK),
    "mask in another case": (
        {"inputs": ["a [MASK]", "a [mask]"]},
        "inputs[1] has no mask; write [MASK] in place of a word.",
    ),
    "too many masks": (
        {"inputs": ["[MASK] [MASK]"] * 3 + ["[MASK]"]},
        "The request must have at most 6 masks (got 7); send fewer or raise FILLMASK_MAX_MASKS.",
    ),
    "too long": (
        {"inputs": "the [MASK] " * 16},
        f"inputs must have at most 32 tokens, special tokens included (got 34); {WINDOW}",
    ),
    "too long, of several": (
        {"inputs": ["[MASK]", "dog " * 50]},
        f"inputs[1] must have at most 32 tokens, special tokens included (got 52); {WINDOW}",
    ),
    "too many characters": (
        {"inputs": "[MASK]" + " " * 3000},
        (
            "inputs must have at most 2048 characters (got 3006), because the model reads at "
            f"most 32 tokens; {WINDOW}"
        ),
    ),
    # top_k
    "top_k zero": (parameters(top_k=0), f"{TOP_K} 0)."),
    "top_k negative": (parameters(top_k=-3), f"{TOP_K} -3)."),
    "top_k too large": (parameters(top_k=21), f"{TOP_K} 21); raise FILLMASK_MAX_TOP_K."),
    "top_k huge": (parameters(top_k=10**100), f"{TOP_K} 1{'0' * 79}); raise FILLMASK_MAX_TOP_K."),
    "top_k a float": (parameters(top_k=5.5), f"{TOP_K} 5.5)."),
    "top_k true": (parameters(top_k=True), f"{TOP_K} true)."),
    "top_k a text": (parameters(top_k="5"), f'{TOP_K} "5").'),
    "top_k nested": (DEEP, f"{TOP_K} a list)."),
    "top_k an object": (parameters(top_k={}), f"{TOP_K} an object)."),
    "top_k a list": (parameters(top_k=[5]), f"{TOP_K} a list)."),
    # targets
    "targets empty": (parameters(targets=[]), f"{TARGETS} a list of 0)."),
    "targets a text": (parameters(targets="dog"), f'{TARGETS} "dog").'),
    "targets an object": (parameters(targets={}), f"{TARGETS} an object)."),
    "too many targets": (parameters(targets=["a"] * 10001), f"{TARGETS} a list of 10001)."),
    "a target a number": (parameters(targets=["dog", 3]), f"targets[1] {NOT_EMPTY} 3)."),
    "a target empty": (parameters(targets=[" "]), f'targets[0] {NOT_EMPTY} " ").'),
    "a target twice": (
        parameters(targets=["dog", "cat", "dog"]),
        'The target "dog" is a duplicate; list it once.',
    ),
    "a target twice, spelled otherwise": (
        parameters(targets=["paris", "Paris"]),
        'The targets "paris" and "Paris" have the same tokens; remove one of them.',
    ),
    "an unknown target": (
        parameters(targets=["Timbuktu"]),
        (
            'The target "Timbuktu" has characters that the model\'s vocabulary lacks; remove the '
            "target."
        ),
    ),
    "a special target": (
        parameters(targets=["[SEP]"]),
        'The target "[SEP]" has a special token of the model; write only ordinary text.',
    ),
}


@pytest.mark.parametrize(
    "path", ["/fill-mask", "/score", "/v1/models/tiny:predict", "/v2/models/tiny/infer"]
)
def test_every_endpoint_uses_the_strict_reader(path: str, client: TestClient) -> None:
    # Other JSON parsers accept a duplicate field. More invalid JSON is in test_strict_json.py.
    answer = client.post(path, content=b'{"a": 1, "a": 2}', headers=JSON)
    check_refusal(answer, 422, 'The field "a" is a duplicate; remove it.')


@pytest.mark.parametrize("case", INVALID)
def test_invalid_body(case: str, client: TestClient) -> None:
    body, message = INVALID[case]
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    check_refusal(client.post("/fill-mask", content=content, headers=JSON), 422, message)


@pytest.mark.parametrize("path", ["/fill-mask", "/score", "/v2/models/tiny/infer"])
def test_a_compressed_body_is_rejected(path: str, client: TestClient) -> None:
    # The service cannot check the size of the decompressed body before reading it.
    headers = JSON | {"Content-Encoding": "gzip"}
    answer = client.post(path, content=gzip.compress(b'{"inputs": "[MASK]"}'), headers=headers)
    message = 'The service does not support the content encoding "gzip"; send plain JSON.'
    check_refusal(answer, 415, message)
    plain = headers | {"Content-Encoding": "identity"}
    assert client.post("/fill-mask", content=b'{"inputs": "[MASK]"}', headers=plain).is_success


def test_the_service_answers_after_bad_input(client: TestClient) -> None:
    assert client.get("/health/ready").status_code == 200
    assert client.post("/fill-mask", json={"inputs": "the [MASK]"}).status_code == 200
