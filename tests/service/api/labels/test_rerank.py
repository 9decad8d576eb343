"""Requests to /rerank, /predict and Cohere's paths: forms, limits, errors and the model."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from fillmask import FillMask, InvalidRequestError
from tests.service.api.labels.bundles import LABELS
from tests.service.responses import post
from tests.service.serving import serving

QUERY = "where is the cat"
TEXTS = ["the cat sat", "the dog lay by the door", "a ship"]
LONG = "the dog lay by the door " * 10
NOT_REPEATED = "Only /v1/rerank and /v2/rerank repeat the documents."


def test_texts_come_back_in_the_order_of_their_scores(client: TestClient) -> None:
    ranks = post(client, "/rerank", query=QUERY, texts=TEXTS)
    assert [set(one) for one in ranks] == [{"index", "score"}] * 3
    scores = [one["score"] for one in ranks]
    assert scores == sorted(set(scores), reverse=True)
    assert len(scores) == 3
    equal = post(client, "/rerank", query=QUERY, texts=["a ship", "a ship", "a ship"])
    assert [one["index"] for one in equal] == [0, 1, 2]
    with_texts = post(client, "/models/ranker/rerank", query=QUERY, texts=TEXTS, return_text=True)
    assert with_texts == [one | {"text": TEXTS[one["index"]]} for one in ranks]


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
    unknown = {"query": QUERY, "documents": TEXTS, "model": "rerank-v9"}
    answer = client.post("/v2/rerank", json=unknown)
    assert answer.status_code == 404
    assert answer.json()["error"] == (
        'Unknown model "rerank-v9"; use a served model: "tiny", "labels", "both", "ranker", '
        '"splade", "static", "rerank-v3.5", "BAAI/bge-reranker-base".'
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
    with serving(ranker, auto_truncate=True) as client:
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
    [(kind, names)] = client.get("/models/labels/info").json()["model_type"].items()
    assert (kind, list(names["id2label"].values())) == ("classifier", list(LABELS))


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
        for arguments, message in (
            ({"query": "a\ud800", "texts": TEXTS}, f"query {surrogate}"),
            ({"query": QUERY, "texts": ["a", "b\ud800"]}, f"texts[1] {surrogate}"),
            (
                {"query": QUERY, "texts": [], "top_n": 0},
                "top_n must be a whole number of at least 1 (got 0).",
            ),
            (
                {"query": QUERY, "texts": TEXTS, "on_error": "report"},
                (
                    'Unknown field "on_error" in parameters; allowed: query, top_n, raw_scores, '
                    "texts, truncate."
                ),
            ),
        ):
            with pytest.raises(InvalidRequestError) as caught:
                model.rerank(**arguments)
            assert str(caught.value) == message
