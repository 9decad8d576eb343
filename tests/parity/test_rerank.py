"""Rerankers over HTTP, compared with transformers, also where pairs exceed the model's input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.parity.served import TOLERANCE, Served, serve

KINDS = ("BERT", "RoBERTa", "XLM-RoBERTa", "DistilBERT", "ALBERT", "ModernBERT")
QUERY = "Where is she?"
LONG = " ".join(["She is in Rome, and Rome is old!"] * 40)
TEXTS = ["She is in Rome.", "a cup of tea", LONG, "!", f"Rome {LONG}"]


@pytest.fixture(scope="module", params=KINDS)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """Service of a random reranker."""
    head = "ForSequenceClassification"
    with serve(tmp_path_factory.mktemp("rerank"), request.param, head, num_labels=1) as one:
        yield one


@torch.inference_mode()
def expected_logits(served: Served, query: str, texts: list[str]) -> list[float]:
    logits = []
    for text in texts:
        encoded = served.tokenizer(
            query,
            text,
            truncation=True,
            max_length=served.client.get("/info").json()["limits"]["max_tokens"],
            return_tensors="pt",
        )
        logits.append(served.model(**encoded).logits[0, 0].item())
    return logits


@pytest.mark.parametrize("query", [QUERY, LONG], ids=["short", "long"])
def test_scores_are_those_of_transformers(served: Served, query: str) -> None:
    logits = expected_logits(served, query, TEXTS)
    body: dict[str, Any] = {"query": query, "texts": TEXTS, "truncate": True}
    raw = served.client.post("/rerank", json=body | {"raw_scores": True})
    assert raw.status_code == 200, raw.text
    for one in raw.json():
        assert one["score"] == pytest.approx(logits[one["index"]], abs=TOLERANCE)
    ranks = served.client.post("/rerank", json=body).json()
    assert [one["index"] for one in ranks] == [one["index"] for one in raw.json()]
    scores = torch.sigmoid(torch.tensor(logits)).tolist()
    for one in ranks:
        assert one["score"] == pytest.approx(scores[one["index"]], abs=TOLERANCE)
    documents = {"query": query, "documents": TEXTS}
    for path in ("/v1/rerank", "/v2/rerank"):
        results = served.client.post(path, json=documents).json()["results"]
        assert [(one["index"], one["relevance_score"]) for one in results] == [
            (one["index"], one["score"]) for one in ranks
        ]


def test_truncated_texts_are_classified_alike(served: Served) -> None:
    limit = served.client.get("/info").json()["limits"]["max_tokens"]
    ours = served.post("/classify", [LONG, "Rome"], on_long_text="truncate")
    for text, [label] in zip((LONG, "Rome"), ours, strict=True):
        encoded = served.tokenizer(
            text,
            truncation=True,
            max_length=limit,
            return_tensors="pt",
        )
        with torch.inference_mode():
            score = torch.sigmoid(served.model(**encoded).logits[0, 0]).item()
        assert label["score"] == pytest.approx(score, abs=TOLERANCE)
