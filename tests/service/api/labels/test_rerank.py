"""Requests to /rerank, /predict and Cohere's paths: forms, limits, errors and the model."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from fillmask import FillMask, InvalidRequestError
from fillmask.app import create_app
from fillmask.settings import Settings
from tests.service.api.labels.bundles import LABELS
from tests.service.refusal import check_refusal

QUERY = "where is the cat"
TEXTS = ["the cat sat", "the dog lay by the door", "a ship"]
LONG = "the dog lay by the door " * 10
ALIASES = "rerank-v3.5=ranker, BAAI/bge-reranker-base=ranker"
TOP_N = "top_n must be a whole number of at least 1 (got"
NOT_REPEATED = "Only /v1/rerank and /v2/rerank repeat the documents."
MORE = "must have at most 4 texts (got 5); send fewer or raise FILLMASK_MAX_TEXTS."


@pytest.fixture(scope="module")
def client(
    tmp_path_factory: pytest.TempPathFactory, both: Path, ranker: Path
) -> Iterator[TestClient]:
    """Client of a service with a classifier of three labels and a reranker, in this order."""
    bundles = tmp_path_factory.mktemp("rerank")
    for path in (both, ranker):
        (bundles / path.name).symlink_to(path)
    settings = Settings(bundle=bundles, threads=2, max_texts=4, served_name=ALIASES)
    with TestClient(create_app(settings)) as test_client:
        yield test_client


def post(client: TestClient, path: str, **body: object) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_texts_come_back_in_the_order_of_their_scores(client: TestClient) -> None:
    ranks = post(client, "/rerank", query=QUERY, texts=TEXTS)
    assert [set(one) for one in ranks] == [{"index", "score"}] * 3
    scores = [one["score"] for one in ranks]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 3
    for one in ranks:
        pair = {"text": QUERY, "text_pair": TEXTS[one["index"]]}
        sigmoid = {"function_to_apply": "sigmoid"}
        [[label]] = post(client, "/models/ranker/classify", inputs=pair, parameters=sigmoid)
        assert one["score"] == pytest.approx(label["score"], abs=1e-6)
    with_texts = post(client, "/models/ranker/rerank", query=QUERY, texts=TEXTS, return_text=True)
    assert with_texts == [one | {"text": TEXTS[one["index"]]} for one in ranks]


def test_equal_texts_keep_their_order(client: TestClient) -> None:
    ranks = post(client, "/rerank", query=QUERY, texts=["a ship", "a ship", "a ship"])
    assert [one["index"] for one in ranks] == [0, 1, 2]


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank", "/models/ranker/rerank"])
def test_documents_have_the_form_of_cohere_and_jina(path: str, client: TestClient) -> None:
    ranks = post(client, "/rerank", query=QUERY, texts=TEXTS)
    documents = [TEXTS[0], {"text": TEXTS[1], "title": "b", "year": 7}, TEXTS[2]]
    headers = {"X-Request-ID": "abc-1"}
    body = {"query": QUERY, "documents": documents, "top_n": 2, "return_documents": True}
    answer = client.post(path, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    response = answer.json()
    assert (response["id"], response["model"]) == ("abc-1", "ranker")
    objects = [{"text": TEXTS[0]}, documents[1], {"text": TEXTS[2]}]
    versioned = path.startswith("/v")
    assert response["results"] == [
        {"index": one["index"], "relevance_score": one["score"]}
        | ({"document": objects[one["index"]]} if versioned else {})
        for one in ranks[:2]
    ]
    tokens = response["usage"]["total_tokens"]
    assert tokens > 3 * len(QUERY.split())
    assert response["usage"]["prompt_tokens"] == tokens
    assert response["meta"] == {
        "api_version": {"version": "2" if path == "/v2/rerank" else "1"},
        "billed_units": {"search_units": 0},
        "tokens": {"input_tokens": tokens},
        **({} if versioned else {"warnings": [NOT_REPEATED]}),
    }
    assert post(client, path, query=QUERY, documents=TEXTS)["results"][0].keys() == {
        "index",
        "relevance_score",
    }


def test_the_body_names_the_model(client: TestClient) -> None:
    for name in ("ranker", "rerank-v3.5", "BAAI/bge-reranker-base"):
        answer = post(client, "/v2/rerank", query=QUERY, documents=TEXTS, model=name)
        assert answer["model"] == "ranker"
        assert post(client, "/rerank", query=QUERY, texts=TEXTS, model=name)
        named = {"query": QUERY, "documents": TEXTS, "model": name}
        for path in (name, name.replace("/", "%2F"), "rerank-v3.5"):
            assert post(client, f"/models/{path}/rerank", **named)["model"] == "ranker"
        other = client.post("/models/both/rerank", json=named)
        message = f'model must be null or a name of the model in the path, "both" (got "{name}").'
        assert (other.status_code, other.json()) == (422, {"error": message})
    unknown = {"query": QUERY, "documents": TEXTS, "model": "rerank-v9"}
    answer = client.post("/v2/rerank", json=unknown)
    assert answer.status_code == 404
    assert answer.json()["error"] == (
        'Unknown model "rerank-v9"; use a served model: "both", "ranker", "rerank-v3.5", '
        '"BAAI/bge-reranker-base".'
    )


@pytest.mark.parametrize("inputs", [TEXTS[0], [TEXTS[0]]])
def test_one_text_is_predicted_without_a_list(inputs: object, client: TestClient) -> None:
    labels = post(client, "/predict", inputs=inputs)
    assert [labels] == post(client, "/classify", inputs=TEXTS[0])
    assert {one["label"] for one in labels} == set(LABELS)


def test_lists_are_predicted_as_pairs_or_as_texts(client: TestClient) -> None:
    pair = {"text": TEXTS[0], "text_pair": TEXTS[1]}
    assert [post(client, "/predict", inputs=TEXTS[:2])] == post(client, "/classify", inputs=pair)
    mixed = post(client, "/predict", inputs=[[TEXTS[0]], TEXTS[:2]])
    assert mixed == post(client, "/classify", inputs=[TEXTS[0], pair])
    raw = post(client, "/models/both/predict", inputs=TEXTS[0], raw_scores=True)
    function = {"function_to_apply": "none"}
    assert [raw] == post(client, "/classify", inputs=TEXTS[0], parameters=function)


def test_long_texts_are_truncated_on_request(client: TestClient) -> None:
    for path, field in (("/rerank", "texts"), ("/predict", "inputs")):
        body: dict[str, Any] = {field: [["a ship", LONG]] if field == "inputs" else [LONG]}
        if field == "texts":
            body["query"] = QUERY
        assert post(client, path, **body, truncate=True)
        for refused in (body, body | {"truncate": None}):
            answer = client.post(path, json=refused)
            assert answer.status_code == 422
            assert f"{field} must have at most 24 tokens" in answer.json()["error"]
            assert answer.json()["error"].endswith("; shorten it or set truncate to true.")
    # Cohere's clients expect that long documents are cut
    answer = client.post("/v2/rerank", json={"query": QUERY, "documents": [LONG]})
    assert answer.json()["results"]
    assert answer.headers["X-Warnings"].startswith("truncated_texts=1")


def test_the_request_says_at_which_side_texts_are_cut(client: TestClient) -> None:
    text = f"the cat {LONG}a ship"
    body: dict[str, Any] = {"query": QUERY, "texts": [text], "truncate": True}
    kept = {
        side: post(client, "/rerank", **body, truncation_direction=side)
        for side in ("Right", "right", None, "Left", "left")
    }
    assert kept["Right"] == kept["right"] == kept[None] == post(client, "/rerank", **body)
    assert kept["Left"] == kept["left"] != kept["Right"]
    [of_documents] = post(
        client, "/v1/rerank", query=QUERY, documents=[text], truncation_side="left"
    )["results"]
    assert of_documents["relevance_score"] == kept["Left"][0]["score"]


def test_a_service_may_cut_by_default(ranker: Path) -> None:
    with TestClient(create_app(Settings(bundle=ranker, threads=1, auto_truncate=True))) as client:
        assert client.get("/info").json()["auto_truncate"] is True
        pair = {"text": QUERY, "text_pair": LONG}
        for path, body, refusal in (
            ("/rerank", {"query": QUERY, "texts": [LONG]}, {"truncate": False}),
            ("/predict", {"inputs": [[QUERY, LONG]]}, {"truncate": False}),
            ("/classify", {"inputs": pair}, {"parameters": {"on_long_text": "error"}}),
        ):
            answer = client.post(path, json=body)
            assert answer.headers["X-Warnings"].startswith("truncated_texts=1")
            assert client.post(path, json=body | refusal).status_code == 422


def test_blank_texts_are_ranked(client: TestClient) -> None:
    texts = ["the cat sat", "", " "]
    ranks = post(client, "/rerank", query=QUERY, texts=texts)
    assert {one["index"] for one in ranks} == {0, 1, 2}
    by_index = {one["index"]: one["score"] for one in ranks}
    assert by_index[1] == by_index[2] != by_index[0]
    found = post(client, "/v1/rerank", query=QUERY, documents=texts)["results"]
    assert {one["index"]: one["relevance_score"] for one in found} == by_index
    [[blank], [other]] = post(
        client, "/models/ranker/predict", inputs=[[QUERY, ""], ["", QUERY]], raw_scores=True
    )
    assert blank["score"] != other["score"]


@pytest.mark.parametrize(
    "fields",
    [
        {"max_chunks_per_doc": None, "rank_fields": None, "return_documents": None},  # LangChain.js
        {"max_chunks_per_doc": 10, "rank_fields": ["text"]},
        {"max_tokens_per_doc": 4096, "priority": 5},  # haystack
        {"max_tokens_per_doc": 16, "max_tokens_per_query": 100},
        {"truncate_prompt_tokens": -1, "truncation_side": "right", "user": "a", "priority": 0},
        {"use_activation": True, "instruction": None, "mm_processor_kwargs": None},
        {"request_id": "1", "cache_salt": "x", "raw_scores": False},
    ],
)
def test_fields_that_change_nothing_are_accepted(
    fields: dict[str, Any], client: TestClient
) -> None:
    body = {"query": QUERY, "documents": TEXTS}
    results = post(client, "/v1/rerank", **body)["results"]
    for path in ("/v1/rerank", "/v2/rerank", "/rerank"):
        assert post(client, path, **body, **fields)["results"] == results


def test_raw_scores_and_the_best_texts_in_both_forms(client: TestClient) -> None:
    ranks = post(client, "/rerank", query=QUERY, texts=TEXTS, top_n=2, raw_scores=True)
    found = post(client, "/rerank", query=QUERY, documents=TEXTS, top_n=2, raw_scores=True)
    assert [one["relevance_score"] for one in found["results"]] == [one["score"] for one in ranks]
    assert len(ranks) == 2
    assert any(not 0 < one["score"] < 1 for one in ranks)


def test_info_has_the_type_of_the_model_as_in_text_embeddings_inference(
    client: TestClient,
) -> None:
    # Dify's plugin reads it before its first request.
    expected = {"id2label": {"0": "relevant"}, "label2id": {"relevant": 0}}
    assert client.get("/models/ranker/info").json()["model_type"] == {"reranker": expected}
    [(kind, names)] = client.get("/info").json()["model_type"].items()
    assert (kind, list(names["id2label"].values())) == ("classifier", list(LABELS))


# arguments of Python, which are the body of /rerank
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"query": " ", "texts": TEXTS}, 'query must be a non-blank text (got " ").'),
    ({"query": None, "texts": TEXTS}, "query must be a non-blank text (got null)."),
    ({"query": 3, "texts": TEXTS}, "query must be a non-blank text (got 3)."),
    ({"query": ["a"], "texts": TEXTS}, "query must be a non-blank text (got a list)."),
    ({"query": QUERY, "texts": ["a", 3]}, "texts[1] must be a text (got 3)."),
    ({"query": QUERY, "texts": ["a", None]}, "texts[1] must be a text (got null)."),
    ({"query": QUERY, "texts": [["a"]]}, "texts[0] must be a text (got a list)."),
    (
        {"query": QUERY, "texts": [{"text": "a"}]},
        "texts[0] must be a text (got an object).",
    ),
    ({"query": QUERY, "texts": "a"}, 'texts must be a list of one or more texts (got "a").'),
    ({"query": QUERY, "texts": None}, "texts must be a list of one or more texts (got null)."),
    ({"query": QUERY, "texts": {}}, "texts must be a list of one or more texts (got an object)."),
    (
        {"query": QUERY, "texts": TEXTS, "raw_scores": 1},
        "raw_scores must be true or false (got 1).",
    ),
    ({"query": QUERY, "texts": ["", " "]}, "texts has no tokens; write at least one word."),
    ({"query": QUERY, "texts": TEXTS, "truncate": 0}, "truncate must be true or false (got 0)."),
    (
        {"query": QUERY, "texts": TEXTS, "truncate": "no"},
        'truncate must be true or false (got "no").',
    ),
    (
        {"query": QUERY, "texts": ["a", LONG]},
        (
            "texts[1] must have at most 24 tokens, special tokens included (got 70); shorten it or "
            "set truncate to true."
        ),
    ),
]


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        *(("/rerank", body, message) for body, message in REFUSED),
        ("/rerank", {"texts": TEXTS}, "query is missing."),
        ("/rerank", {"query": QUERY}, "texts is missing."),
        ("/rerank", [], "The body must be a JSON object (got a list)."),
        (
            "/rerank",
            {"query": QUERY, "texts": []},
            "texts must be a list of one or more texts (got an empty list).",
        ),
        ("/rerank", {"query": QUERY, "texts": ["a"] * 5}, f"texts {MORE}"),
        (
            "/rerank",
            {"query": QUERY, "texts": TEXTS, "user": "a"},
            (
                'Unknown field "user" in the body; allowed: query, top_n, raw_scores, model, '
                "truncate, truncation_direction, texts, return_text."
            ),
        ),
        (
            "/rerank",
            {"query": QUERY, "texts": TEXTS, "truncation_direction": "up"},
            (
                'truncation_direction must be Left or Right (got "up"); by default, texts are cut '
                "as the model cuts them."
            ),
        ),
        (
            "/rerank",
            {"query": QUERY, "documents": []},
            "documents must be a list of one or more texts (got an empty list).",
        ),
        (
            "/v2/rerank",
            {"query": QUERY, "documents": [{"title": "b"}]},
            'documents[0] must be a text or {"text": text} (got an object).',
        ),
        (
            "/v2/rerank",
            {"query": QUERY, "documents": [{"text": 1}]},
            'documents[0] must be a text or {"text": text} (got 1).',
        ),
        *(
            (path, {"query": QUERY, field: TEXTS, "top_n": 0}, f"{TOP_N} 0).")
            for path, field in (("/rerank", "texts"), ("/v2/rerank", "documents"))
        ),
        (
            "/v2/rerank",
            {"query": QUERY, "documents": TEXTS, "max_tokens_per_doc": 5},
            (
                "max_tokens_per_doc must be null or at least 16, the tokens of query and document "
                "(got 5); send shorter texts."
            ),
        ),
        (
            "/rerank",
            {"query": QUERY, "documents": [LONG], "truncate_prompt_tokens": 23},
            (
                "truncate_prompt_tokens must be null or at least 24, the tokens of query and "
                "document (got 23); send shorter texts."
            ),
        ),
        (
            "/v1/rerank",
            {"query": QUERY, "documents": TEXTS, "max_chunks_per_doc": 0},
            ("max_chunks_per_doc must be null or at least 1 (got 0); each document is one chunk."),
        ),
        (
            "/v1/rerank",
            {"query": QUERY, "documents": TEXTS, "rank_fields": ["title"]},
            ('rank_fields must be null or ["text"] (got "title"); put what matters into text.'),
        ),
        (
            "/rerank",
            {"query": QUERY, "documents": TEXTS, "instruction": "Find it."},
            'instruction must be null (got "Find it."); the service adds nothing to texts.',
        ),
        (
            "/v2/rerank",
            {"query": QUERY, "documents": TEXTS, "priority": "high"},
            'priority must be a whole number or null (got "high"); it has no effect.',
        ),
        (
            "/v2/rerank",
            {"query": QUERY, "documents": TEXTS, "use_activation": False},
            "use_activation must be true or null (got false); use raw_scores for logits.",
        ),
        (
            "/v2/rerank",
            {"query": QUERY, "documents": TEXTS, "model": 5},
            "model must be a non-blank text (got 5).",
        ),
        (
            "/predict",
            {"inputs": ["a", "b", "c"]},
            (
                "inputs must have 1 or 2 texts (got 3); send a text, a pair [text, text] or a list "
                "of [text] and [text, text]."
            ),
        ),
        (
            "/predict",
            {"inputs": []},
            (
                "inputs is empty; send a text, a pair [text, text] or a list of [text] and [text, "
                "text]."
            ),
        ),
        ("/predict", {"inputs": [["a"]] * 5}, f"inputs {MORE}"),
        (
            "/predict",
            {"inputs": [["a"], "b"]},
            'inputs[1] must be [text] or [text, text] (got "b").',
        ),
        ("/predict", {"inputs": [["a", None]]}, "inputs[0][1] must be a text (got null)."),
        ("/predict", {"inputs": [["", " "]]}, "inputs has no tokens; write at least one word."),
        ("/predict", {"inputs": 5}, "inputs must be a non-blank text (got 5)."),
    ],
)
def test_errors(path: str, body: object, message: str, client: TestClient) -> None:
    check_refusal(client.post(path, json=body), 422, message)


def test_a_request_meets_the_queue_of_the_model_in_its_body(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = client.app
    assert isinstance(app, FastAPI)
    admission = app.state.models.by_name["ranker"].batcher._admission
    monkeypatch.setattr(admission, "_accepted", admission._max_tokens)
    body = {"query": QUERY, "documents": TEXTS}
    for path in ("/v1/rerank", "/v2/rerank"):
        assert client.post(path, json=body).status_code == 429
        assert client.post(path, json=body | {"model": "ranker"}).status_code == 429
        answer = client.post(path, json=body | {"model": "both"})
        assert answer.status_code == 422  # cannot rerank


def test_a_classifier_cannot_rerank(client: TestClient) -> None:
    body = {"query": QUERY, "texts": TEXTS}
    check_refusal(
        client.post("/models/both/rerank", json=body),
        422,
        'Model "both" cannot rerank, which needs a model with one label that reads pairs (got 3 '
        "labels); classify with it.",
    )


def test_python_ranks_as_http_does(ranker: Path, client: TestClient) -> None:
    with FillMask(ranker) as model:
        ranks = model.rerank(QUERY, TEXTS)
        expected = post(client, "/rerank", query=QUERY, texts=TEXTS)
        assert [one.to_dict() for one in ranks] == [
            {"index": one["index"], "score": pytest.approx(one["score"], abs=1e-6)}
            for one in expected
        ]
        assert model.rerank(QUERY, iter(TEXTS), top_n=1) == ranks[:1]
        assert asyncio.run(model.arerank(QUERY, TEXTS, top_n=2)) == ranks[:2]
        assert model.rerank(QUERY, []) == []
        assert model.rerank(QUERY, [LONG], truncate=True)
        blank = post(client, "/rerank", query=QUERY, texts=["", *TEXTS])
        assert [one.index for one in model.rerank(QUERY, ["", *TEXTS])] == [
            one["index"] for one in blank
        ]
        assert model.rerank(QUERY, iter(()), top_n=1, truncate=None) == []
        flag: Any = np.True_
        assert model.rerank(QUERY, np.array([LONG]), truncate=flag)
        surrogate = "has an unpaired surrogate at character 1; remove it or complete the pair."
        for arguments, message in [
            *REFUSED,
            ({"query": "a\ud800", "texts": TEXTS}, f"query {surrogate}"),
            ({"query": QUERY, "texts": ["a", "b\ud800"]}, f"texts[1] {surrogate}"),
            *(
                (
                    {"query": QUERY, "texts": [], "top_n": top_n},
                    f"{TOP_N} {shown}).",
                )
                for top_n, shown in ((0, "0"), (-1, "-1"), ("2", '"2"'), (1.5, "1.5"))
            ),
            (
                {"query": QUERY, "texts": TEXTS, "on_error": "report"},
                (
                    'Unknown field "on_error" in parameters; allowed: query, top_n, raw_scores, '
                    "texts, truncate."
                ),
            ),
        ]:
            with pytest.raises(InvalidRequestError) as caught:
                model.rerank(**arguments)
            assert str(caught.value) == message
