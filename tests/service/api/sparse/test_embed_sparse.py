"""Requests to /embed_sparse: forms, parameters, limits and errors."""

from pathlib import Path
from typing import Any

import numpy as np
from fastapi.testclient import TestClient

from fillmask import FillMask, RejectedText, TextPair
from tests.model.samples import VERSES
from tests.service import responses
from tests.service.serving import serving
from tests.service.sparse_bundles import verse_vocabulary

LONG = " ".join(VERSES)


def post(client: TestClient, path: str = "/embed_sparse", **body: object) -> Any:
    return responses.post(client, path, **body)


def test_vectors_have_the_form_of_text_embeddings_inference(client: TestClient) -> None:
    # A single text also has a list, and the dimensions ascend.
    [alone] = post(client, inputs=VERSES[0])
    first, second = post(client, inputs=VERSES[:2], truncate=False)
    assert first == alone != second
    assert all(set(one) == {"index", "value"} for one in first)
    indices = [one["index"] for one in first]
    assert indices == sorted(set(indices))
    assert min(one["value"] for one in first) > 0


def test_the_forms_of_a_vector_agree(client: TestClient) -> None:
    [pairs] = post(client, inputs=VERSES[0])
    [arrays] = post(client, inputs=VERSES[0], format="arrays")
    [tokens] = post(client, inputs=VERSES[0], format="tokens")
    assert arrays == {
        "indices": [one["index"] for one in pairs],
        "values": [one["value"] for one in pairs],
    }
    vocabulary = verse_vocabulary()
    assert tokens == {vocabulary.id_to_token(one["index"]): one["value"] for one in pairs}


def test_the_largest_weights_are_kept(client: TestClient) -> None:
    [whole] = post(client, inputs=VERSES[0])
    ranked = sorted(whole, key=lambda one: -one["value"])
    [kept] = post(client, inputs=VERSES[0], top_n=5)
    assert kept == sorted(ranked[:5], key=lambda one: one["index"])
    [above] = post(client, inputs=VERSES[0], min_weight=ranked[8]["value"] - 1e-6)
    assert above == sorted(ranked[:9], key=lambda one: one["index"])
    assert post(client, inputs=VERSES[0], min_weight=1e6) == [[]]
    assert post(client, inputs=VERSES[0], top_n=None, min_weight=None, input_type=None) == [whole]


def test_a_query_is_the_weights_of_its_tokens(client: TestClient) -> None:
    path = "/models/static/embed_sparse"
    [query] = post(client, path, inputs=VERSES[0], input_type="query")
    ids = sorted(set(verse_vocabulary().encode(VERSES[0], add_special_tokens=False).ids))
    heaviest = sorted(ids)[-7:]
    assert query == [{"index": index, "value": index / 8} for index in heaviest]
    least = query[-3]["value"]
    [heavy] = post(client, path, inputs=VERSES[0], input_type="query", min_weight=least)
    assert heavy == query[-3:]
    [document] = post(client, path, inputs=VERSES[0], top_n=100)
    assert len(document) == 7
    assert document != query
    [same] = post(client, inputs=VERSES[0], input_type="query")
    assert same == post(client, inputs=VERSES[0])[0]


def test_a_blank_text_has_the_vector_of_the_special_tokens(
    client: TestClient, splade: Path
) -> None:
    [blank, white, other] = post(client, inputs=["", " ", VERSES[0]])
    assert blank == white != other
    assert [blank] == post(client, inputs="")
    with FillMask(splade, threads=1) as model:
        assert model.embed_sparse("").to_dict() == model.embed_sparse([""])[0].to_dict()
    query = {"inputs": "", "input_type": "query"}
    ids = verse_vocabulary().encode("").ids
    [found] = post(client, "/models/static/embed_sparse", **query)
    assert found == [{"index": index, "value": index / 8} for index in sorted(ids)]


def test_optional_fields_of_text_embeddings_inference(client: TestClient, splade: Path) -> None:
    sides = {
        side: post(client, inputs=LONG, truncate=True, truncation_direction=side, prompt_name=None)
        for side in ("Left", "Right", None)
    }
    assert sides["Left"] != sides["Right"] == sides[None]
    info = client.get("/models/splade/info").json()
    assert info["model_type"] == {"embedding": {"pooling": "splade"}}
    with serving(splade, auto_truncate=True) as cutting:
        assert post(cutting, inputs=LONG) == sides["Right"]
        refused = cutting.post("/embed_sparse", json={"inputs": LONG, "truncate": False})
        assert refused.status_code == 422


def test_python_has_the_same_vectors(client: TestClient, splade: Path) -> None:
    expected = post(client, inputs=VERSES[:3], format="arrays", top_n=9)
    with FillMask(splade, threads=1) as model:
        vectors = model.embed_sparse(VERSES[:3], top_n=9)
        for vector, body in zip(vectors, expected, strict=True):
            assert vector.values.dtype == np.float32
            assert vector.to_dict() == body | {"tokens": vector.tokens}
            np.testing.assert_array_max_ulp(vector.values, np.float32(body["values"]))
        one = model.embed_sparse(VERSES[0], on_long_text="truncate")
        assert [one.tokens[place] for place in np.argsort(one.values)[::-1][:2]]
        assert model.embed_sparse([]) == model.embed_sparse(iter([]), on_error="report") == []
        gaps: list[Any] = [VERSES[0], LONG, None, float("nan"), TextPair("a", "b")]
        good, bad, *others = model.embed_sparse(gaps, on_error="report")
        assert isinstance(bad, RejectedText)
        assert len(good.indices)
        assert others == [
            RejectedText("inputs[2] must be a text (got null)."),
            RejectedText("inputs[3] must be a text (got NaN)."),
            RejectedText("inputs[4] must be a text (got a value of type TextPair)."),
        ]
