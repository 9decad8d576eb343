"""Requests that are refused, by path and body, with the sentence of each refusal.

Refusals that Python and the command share are in tests/service/parameters/test_same_refusals.py.
"""

import gzip
import json
from collections.abc import Mapping
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.responses import check_refusal

Row = tuple[Any, str]
JSON = {"content-type": "application/json"}
PAIR = 'a pair {"text", "text_pair"}'
LIST = f"it must be a text, {PAIR} or a list of these."
NO_TEXT = f"inputs must be a text, {PAIR} or a list of these (got"
NOT_A_TEXT, NOT_EMPTY = f"must be a text or {PAIR} (got", "must be a non-blank text (got"
NO_OBJECT = "The body must be a JSON object (got"
NO_MASK = "has no mask; write [MASK] in place of a word."
NO_PAIRS = "is a pair, but this model reads only single texts; remove text_pair."
NO_TOKENS = "has no tokens; write at least one word."
FEWER = "send fewer or raise FILLMASK_MAX_TEXTS."
MORE = f"must have at most 4 texts (got 5); {FEWER}"
TOP_K = "top_k must be a whole number from 1 to 20 (got"
FIELDS = "allowed: inputs, parameters, on_error, options."
FILLS = "top_k, targets, granularity, max_word_tokens, strategy, order, on_long_text."
LONG = "the cat sat " * 9
TOO_LONG = "must have at most 24 tokens, special tokens included (got {}); shorten it or set"
NESTED = json.loads("[" * 900 + "]" * 900)
QUERY, TEXTS = "where is the cat", ["the cat sat", "the dog lay by the door", "a ship"]
NO_LABELS = 'Model "tiny" does not have the task text-classification; use a model with this task:'
NO_FILLS = 'Model "labels" does not have the task fill-mask; use a model with this task:'
NO_SPARSE = 'Model "tiny" does not have the task sparse; use a model with this task:'
FORM = "a text, a pair [text, text] or a list of [text] and [text, text]."


def pair(text: object = "the cat", text_pair: object = "the dog") -> dict[str, object]:
    return {"text": text, "text_pair": text_pair}


def masked(**parameters: Any) -> dict[str, Any]:
    """Return a body with these parameters."""
    return {"inputs": "the [MASK]", "parameters": parameters}


def ranked(field: str = "documents", /, **fields: Any) -> dict[str, Any]:
    """Return a body to rerank, with changes."""
    return {"query": QUERY, field: TEXTS, **fields}


FILL_MASK: list[Row] = [
    # the shape of the body
    (5, f"{NO_OBJECT} 5)."),
    ([], f"{NO_OBJECT} a list)."),
    (None, f"{NO_OBJECT} null)."),
    ({"inputs": "[MASK]", "x" * 500: 1}, f'Unknown field "{"x" * 77}…" in the body; {FIELDS}'),
    ({"inputs": "[MASK]", "Options": {}}, f'Unknown field "Options" in the body; {FIELDS}'),
    ({"inputs": "[MASK]", "options": "x"}, 'options must be a JSON object (got "x").'),
    (
        {"inputs": "[MASK]", "options": {"use_cache": True, "retry": 1}},
        'Unknown field "retry" in options; allowed: use_cache, wait_for_model, use_gpu.',
    ),
    (
        {"inputs": "[MASK]", "options": {"use_gpu": None, "wait_for_model": 1}},
        "options.wait_for_model must be true or false (got 1).",
    ),
    # parameters of all texts, or of each
    (
        {"inputs": "[MASK]", "parameters": "top_k"},
        'parameters must be a JSON object (got "top_k").',
    ),
    (
        {"inputs": "[MASK]", "parameters": [{}]},
        "parameters is a list but inputs is one text; send one object.",
    ),
    (
        {"inputs": ["[MASK]", "[MASK]"], "parameters": [{}]},
        "parameters must have one object per text of inputs, 2 in total (got 1).",
    ),
    (
        {"inputs": ["[MASK]"], "parameters": [{}] * 1000},
        f"parameters must have at most 4 objects, one per text (got 1000); {FEWER}",
    ),
    (
        {"inputs": ["[MASK]", "[MASK]"], "parameters": [{}, []]},
        "parameters[1] must be a JSON object (got a list).",
    ),
    (
        {"inputs": ["[MASK]", "[MASK]"], "parameters": [None, {"top_k": 0}]},
        f"parameters[1].{TOP_K} 0).",
    ),
    (
        {"inputs": ["[MASK]"], "parameters": [{"k": 0}]},
        f'Unknown field "k" in parameters[0]; allowed: {FILLS}',
    ),
    (
        {"inputs": ["[MASK]"], "parameters": [{"targets": [""]}]},
        f'parameters[0].targets[0] {NOT_EMPTY} "").',
    ),
    (masked(top_k=21), f"{TOP_K} 21); raise FILLMASK_MAX_TOP_K."),
    (masked(top_k=10**100), f"{TOP_K} 1{'0' * 79}); raise FILLMASK_MAX_TOP_K."),
    (masked(top_k=NESTED), f"{TOP_K} a list)."),
    (
        {"inputs": "[MASK]", "on_error": "ignore"},
        'on_error must be error or report (got "ignore").',
    ),
    # texts
    ({}, f"inputs is missing; {LIST}"),
    ({"inputs": None}, f"{NO_TEXT} null)."),
    ({"inputs": []}, f"inputs is empty; {LIST}"),
    ({"inputs": {"texts": "a"}}, 'Unknown field "texts" in inputs; allowed: text, text_pair.'),
    ({"inputs": [None, "[MASK]"]}, f"inputs[0] {NOT_A_TEXT} null)."),
    ({"inputs": ["[MASK]"] * 5}, f"inputs {MORE}"),
    ({"inputs": pair("[MASK]")}, f"inputs {NO_PAIRS}"),
    # masks and tokens
    ({"inputs": "Paris is the <mask>."}, f"inputs {NO_MASK}"),
    ({"inputs": ["a [MASK]", "a [mask]"]}, f"inputs[1] {NO_MASK}"),
    (
        {"inputs": ["[MASK] [MASK]"] * 3 + ["[MASK]"]},
        "The request must have at most 6 masks (got 7); send fewer or raise FILLMASK_MAX_MASKS.",
    ),
    (
        {"inputs": ["[MASK]", "dog " * 50]},
        (
            "inputs[1] must have at most 32 tokens, special tokens included (got 52); shorten it "
            "or set on_long_text to window."
        ),
    ),
    (
        {"inputs": "[MASK]" + " " * 3000},
        (
            "inputs must have at most 2048 characters (got 3006), because the model reads at most "
            "32 tokens; shorten it or set on_long_text to window."
        ),
    ),
]
# a model that reads pairs and has both tasks
BOTH: list[Row] = [
    (
        {"inputs": ["a [MASK]", {"text": "a [MASK]", "pair": "b"}]},
        'Unknown field "pair" in inputs[1]; allowed: text, text_pair.',
    ),
    ({"inputs": pair("[MASK]", "")}, f'inputs.text_pair {NOT_EMPTY} "").'),
    (
        {"inputs": ["a [MASK]", pair("[MASK]", LONG)]},
        f"inputs[1] {TOO_LONG.format(31)} on_long_text to window.",
    ),
    (
        {"inputs": pair("a [MASK]", LONG), "parameters": {"on_long_text": "window"}},
        "inputs.text_pair must have at most 12 tokens with windows (got 27).",
    ),
    (
        {"inputs": pair(LONG, "a [MASK]"), "parameters": {"on_long_text": "window"}},
        (
            "inputs exceeds the model's input and has a mask in text_pair; remove this mask or "
            "shorten the pair."
        ),
    ),
    (
        {"inputs": pair()},
        (
            f'inputs {NO_MASK[:-1]}; model "both" has the task fill-mask (POST /fill-mask, '
            "POST /score) and text-classification (POST /classify)."
        ),
    ),
    (
        masked(function_to_apply="none"),
        f'Unknown field "function_to_apply" in parameters; allowed: {FILLS}',
    ),
]
SCORE: list[Row] = [
    ({"inputs": ["the", {}]}, "inputs[1].text is missing; it must be a non-blank text."),
    ({"inputs": pair(text_pair=["the dog"])}, f"inputs.text_pair {NOT_EMPTY} a list)."),
    (
        {"inputs": "the dog", "options": {}},
        'Unknown field "options" in the body; allowed: inputs, parameters, on_error.',
    ),
]
CLASSIFY: list[Row] = [
    ({"inputs": None}, f"{NO_TEXT} null)."),
    ({"inputs": ""}, f"inputs {NO_TOKENS}"),
    (
        {"inputs": ["the", "the", "the", pair(text_pair=" \n")]},
        rf'inputs[3].text_pair {NOT_EMPTY} " \n").',
    ),
    ({"inputs": pair(LONG)}, f"inputs {TOO_LONG.format(32)} on_long_text to truncate."),
    (
        {"inputs": ["the", pair()], "parameters": [None, {"top_k": 0}]},
        "parameters[1].top_k must be a whole number of at least 1 (got 0).",
    ),
    (
        {"inputs": "the", "options": {"use_tpu": True}},
        'Unknown field "use_tpu" in options; allowed: use_cache, wait_for_model, use_gpu.',
    ),
]
RERANK: list[Row] = [
    ({"texts": TEXTS}, "query is missing."),
    ({"query": QUERY}, "texts is missing."),
    (ranked("texts", texts=[]), "texts must be a list of one or more texts (got an empty list)."),
    (ranked(documents=[]), "documents must be a list of one or more texts (got an empty list)."),
    (ranked("texts", texts=["a"] * 5), f"texts {MORE}"),
    (ranked("texts", return_text=1), "return_text must be true or false (got 1)."),
    (
        ranked("texts", user="a"),
        (
            'Unknown field "user" in the body; allowed: query, top_n, raw_scores, model, truncate, '
            "truncation_direction, texts, return_text."
        ),
    ),
    (
        ranked("texts", truncation_direction="up"),
        (
            'truncation_direction must be Left or Right (got "up"); by default, texts are cut as '
            "the model cuts them."
        ),
    ),
]
DOCUMENTS: list[Row] = [
    (
        ranked(documents=[{"title": "b"}]),
        'documents[0] must be a text or {"text": text} (got an object).',
    ),
    (ranked(documents=[{"text": 1}]), 'documents[0] must be a text or {"text": text} (got 1).'),
    (ranked(top_n=0), "top_n must be a whole number of at least 1 (got 0)."),
    (ranked(model=5), f"model {NOT_EMPTY} 5)."),
    (
        ranked(max_tokens_per_doc=5),
        (
            "max_tokens_per_doc must be null or at least 16, the tokens of query and document (got "
            "5); send shorter texts."
        ),
    ),
    (
        ranked(documents=["the dog lay by the door " * 10], truncate_prompt_tokens=23),
        (
            "truncate_prompt_tokens must be null or at least 24, the tokens of query and document "
            "(got 23); send shorter texts."
        ),
    ),
    (
        ranked(max_chunks_per_doc=0),
        "max_chunks_per_doc must be null or at least 1 (got 0); each document is one chunk.",
    ),
    (
        ranked(rank_fields=["title"]),
        'rank_fields must be null or ["text"] (got "title"); put what matters into text.',
    ),
    (
        ranked(instruction="Find it."),
        'instruction must be null (got "Find it."); the service adds nothing to texts.',
    ),
    (
        ranked(priority="high"),
        'priority must be a whole number or null (got "high"); it has no effect.',
    ),
    (ranked(user=5), "user must be a text or null (got 5); it has no effect."),
    (
        ranked(use_activation=False),
        "use_activation must be true or null (got false); use raw_scores for logits.",
    ),
]
PREDICT: list[Row] = [
    ({"inputs": ["a", "b", "c"]}, f"inputs must have 1 or 2 texts (got 3); send {FORM}"),
    ({"inputs": []}, f"inputs is empty; send {FORM}"),
    ({"inputs": [["a"]] * 5}, f"inputs {MORE}"),
    ({"inputs": [["a"], "b"]}, 'inputs[1] must be [text] or [text, text] (got "b").'),
    ({"inputs": [["a", None]]}, "inputs[0][1] must be a text (got null)."),
    ({"inputs": [["", " "]]}, f"inputs {NO_TOKENS}"),
    ({"inputs": 5}, f"inputs {NOT_EMPTY} 5)."),
]
SPARSE: list[Row] = [
    ({}, "inputs is missing."),
    ({"inputs": []}, "inputs is empty; it must be a text or a list of texts."),
    ({"inputs": ["a"] * 5}, f"inputs {MORE}"),
    ({"inputs": "a", "truncate": 1}, "truncate must be true or false (got 1)."),
    (
        {"inputs": "a", "prompt_name": "query"},
        'prompt_name must be null (got "query"); write the prompt before each text.',
    ),
    (
        {"inputs": "a", "format": "dense"},
        'format must be pairs or tokens or arrays (got "dense").',
    ),
    ({"inputs": ["a", LONG]}, f"inputs[1] {TOO_LONG.format(29)} truncate to true."),
]
V1: list[Row] = [
    ([], f"{NO_OBJECT} a list)."),
    ({}, "instances is missing; it must be a list of texts or pairs."),
    ({"instances": "a [MASK]"}, 'instances must be a list of texts or pairs (got "a [MASK]").'),
    ({"instances": []}, f"instances is empty; {LIST}"),
    ({"instances": [{"text": 5}]}, f"instances[0].text {NOT_EMPTY} 5)."),
    ({"instances": ["a [MASK]", "b"]}, f"instances[1] {NO_MASK}"),
    (
        {"instances": ["[MASK]"], "options": {}},
        'Unknown field "options" in the body; allowed: instances, parameters, on_error.',
    ),
]
REFUSED: Mapping[str, list[Row]] = {
    "/fill-mask": FILL_MASK,
    "/models/both": BOTH,
    "/models/both/score": SCORE,
    "/models/both/classify": CLASSIFY,
    "/rerank": RERANK,
    "/v1/rerank": DOCUMENTS,
    "/v2/rerank": [DOCUMENTS[0]],
    "/models/both/predict": PREDICT,
    "/models/splade/embed_sparse": SPARSE,
    "/v1/models/tiny:predict": V1,
    # models without the task
    "/models/tiny/classify": [({"inputs": "a"}, f'{NO_LABELS} "labels", "both", "ranker".')],
    "/models/labels/score": [({"inputs": "a"}, f'{NO_FILLS} "tiny", "both".')],
    "/v1/models/splade:predict": [
        (
            {"instances": ["a"]},
            (
                'Model "splade" does not have the task text-classification; use a task of this '
                "model: sparse."
            ),
        )
    ],
    "/models/tiny/embed_sparse": [({"inputs": "a"}, f'{NO_SPARSE} "splade", "static".')],
    "/models/both/rerank": [
        (
            ranked("texts"),
            (
                'Model "both" cannot rerank, which needs a model with one label that reads pairs '
                "(got 3 labels); classify with it."
            ),
        ),
        (
            ranked(model="ranker"),
            'model must be null or a name of the model in the path, "both" (got "ranker").',
        ),
    ],
}


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        pytest.param(path, body, message, id=f"{path} {message[:50]}")
        for path, rows in REFUSED.items()
        for body, message in rows
    ],
)
def test_a_request_is_refused(
    path: str, body: object, message: str, every_model: TestClient
) -> None:
    content = json.dumps(body).encode()
    check_refusal(every_model.post(path, content=content, headers=JSON), 422, message)


def test_a_request_at_its_limits_is_answered(every_model: TestClient) -> None:
    body = {"inputs": ["the [MASK]"] * 4, "parameters": [{"top_k": 20}] * 4}
    assert [len(fills) for fills in every_model.post("/fill-mask", json=body).json()] == [20] * 4


NO_PATH = "Unknown path; use an endpoint that GET /docs lists, such as POST /fill-mask."
HEALTH = "Unknown path; use GET /health/live or GET /health/ready."
ENDPOINTS = "POST /fill-mask, POST /score, POST /classify, POST /rerank, POST /embed_sparse."


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("GET", "/nothing", NO_PATH),
        ("POST", "/fill-mask/", NO_PATH),
        ("GET", "/healthz", HEALTH),
        ("GET", "/health/", HEALTH),
        (
            "POST",
            "/embed",
            f"Unknown path; this service makes no dense embeddings; its models have {ENDPOINTS}",
        ),
        (
            "POST",
            "/v1/completions",
            f"Unknown path; this service generates no text; its models have {ENDPOINTS}",
        ),
    ],
)
def test_a_path_is_refused(method: str, path: str, message: str, every_model: TestClient) -> None:
    check_refusal(every_model.request(method, path), 404, message)


@pytest.mark.parametrize(
    ("headers", "content", "status", "message"),
    [
        (JSON, b'{"a": 1, "a": 2}', 422, 'The field "a" is a duplicate; remove it.'),
        (JSON, b"", 400, "The body is empty; it must be a JSON object."),
        (JSON, b" \n", 400, "The body is empty; it must be a JSON object."),
        ({}, b"{}", 415, 'The content type must be application/json (got "").'),
        (
            {"content-type": "application/x-www-form-urlencoded"},
            b"inputs=x",
            415,
            'The content type must be application/json (got "application/x-www-form-urlencoded").',
        ),
        (
            JSON | {"content-encoding": "gzip"},
            gzip.compress(b"{}", mtime=0),
            415,
            'The service does not support the content encoding "gzip"; send plain JSON.',
        ),
        (
            JSON,
            b"x" * 2**21,
            413,
            (
                "The body must have at most 1048576 bytes (got 2097152); send fewer or shorter "
                "texts, or raise FILLMASK_MAX_BODY_BYTES."
            ),
        ),
    ],
)
def test_a_body_is_refused(
    headers: dict[str, str], content: bytes, status: int, message: str, every_model: TestClient
) -> None:
    # Every endpoint uses the strict reader of JSON, which test_strict_json.py tests.
    for path in ("/fill-mask", "/models/both/classify", "/v1/models/tiny:predict"):
        check_refusal(every_model.post(path, content=content, headers=headers), status, message)
    plain = JSON | {"content-encoding": "identity"}
    content = b'{"inputs": "the [MASK]"}'
    assert every_model.post("/fill-mask", content=content, headers=plain).is_success


def test_a_task_that_no_model_has(client: TestClient) -> None:
    message = f"{NO_LABELS.partition(';')[0]}; use a task of this model: fill-mask."
    for path in ("/classify", "/predict"):
        check_refusal(client.post(path, json={"inputs": "[MASK]"}), 422, message)


def test_errors_for_clients_that_name_no_task(every_model: TestClient) -> None:
    # Hugging Face's clients send the bodies of all tasks to one path.
    for model, tasks in (
        ("splade", "sparse (POST /embed_sparse)"),
        ("labels", "text-classification (POST /classify)"),
    ):
        answer = every_model.post(f"/models/{model}", json={"inputs": 5})
        assert answer.status_code == 422
        assert answer.json()["error"].endswith(f'; model "{model}" has the task {tasks}.')
