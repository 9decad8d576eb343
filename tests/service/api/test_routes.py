"""Endpoints over HTTP, with the tiny model."""

import asyncio
import math
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from fillmask import __version__
from fillmask.app import create_app
from fillmask.settings import Settings
from fillmask.tokenization.tokenizer import Tokenizer
from tests.service.tiny import MASK_ID, VOCABULARY, Tiny

TOLERANCE = 2e-5  # float32 sums against float64


def expected(tiny: Tiny, text: str, top_k: int) -> list[list[tuple[int, float]]]:
    """Return the oracle's best fills for each mask of the text."""
    content = (tiny.path / "tokenizer.json").read_bytes()
    encoded = Tokenizer(content, "[MASK]", MASK_ID, range(5)).encode(text)
    ids = encoded.input_ids.tolist()
    return [tiny.best(ids, position, top_k) for position in encoded.mask_positions.tolist()]


def check(fills: list[dict[str, Any]], best: list[tuple[int, float]]) -> None:
    """Compare the fills of one mask with the oracle's fills."""
    assert [fill["token"] for fill in fills] == [token for token, _ in best]
    for fill, (token, log_prob) in zip(fills, best, strict=True):
        assert math.isclose(fill["score"], math.exp(log_prob), rel_tol=TOLERANCE)
        assert fill["token_str"] == VOCABULARY[token]


def test_one_text(client: TestClient, tiny: Tiny) -> None:
    # The response has the fields that Hugging Face's clients read.
    text = "Paris is the [MASK] of France."
    answer = client.post("/fill-mask", json={"inputs": text})
    assert answer.status_code == 200
    fills = answer.json()
    check(fills, expected(tiny, text, 5)[0])
    assert set(fills[0]) == {"score", "token", "token_str", "sequence"}
    for fill in fills:
        if not fill["token_str"].startswith("##"):
            assert fill["sequence"] == text.replace("[MASK]", fill["token_str"])


def test_several_texts_with_several_masks(client: TestClient, tiny: Tiny) -> None:
    # The response is nested by text, and by mask in texts with several masks.
    texts = ["a [MASK] of tea", "[MASK] and [MASK]"]
    body = {"inputs": texts, "parameters": {"top_k": 3}}
    one, two = client.post("/fill-mask", json=body).json()
    check(one, expected(tiny, texts[0], 3)[0])
    for fills, best in zip(two, expected(tiny, texts[1], 3), strict=True):
        check(fills, best)


@pytest.mark.parametrize("path", ["/fill-mask", "/", "/models/tiny"])
def test_options_of_older_clients_of_hugging_face_have_no_effect(
    path: str, client: TestClient
) -> None:
    body = {"inputs": "the [MASK]"}
    plain = client.post(path, json=body)
    assert plain.is_success
    for options in (None, {}, {"use_cache": False, "wait_for_model": True, "use_gpu": None}):
        assert client.post(path, json=body | {"options": options}).json() == plain.json()


def test_any_character_survives(client: TestClient) -> None:
    text = "the Zürich 😀\u2028 \x00 «[MASK]»"
    body = {"inputs": text, "parameters": {"targets": ["dog"]}}
    assert client.post("/fill-mask", json=body).json()[0]["sequence"] == text.replace(
        "[MASK]", "dog"
    )


async def test_concurrent_requests_get_their_own_answers(tiny: Tiny) -> None:
    app = create_app(Settings(bundle=tiny.path, threads=2))
    texts = [f"{'the dog ' * (i % 10)}[MASK] {'cat ' * (i % 7)}" for i in range(40)]

    async def ask(http: httpx.AsyncClient, text: str) -> None:
        answer = await http.post("/fill-mask", json={"inputs": text})
        assert answer.status_code == 200
        check(answer.json(), expected(tiny, text, 5)[0])

    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://test") as http,
    ):
        await asyncio.gather(*(ask(http, text) for text in texts))


def test_health(client: TestClient) -> None:
    assert client.get("/health/live").json() == {"status": "live"}
    assert client.get("/health/ready").json() == {"status": "ready"}


def test_info(client: TestClient, tiny: Tiny) -> None:
    info = client.get("/info").json()
    architecture = info.pop("architecture")
    assert architecture["vocab_size"] == len(tiny.vocabulary)
    assert info == {
        "name": "tiny",
        "tasks": ["fill-mask"],
        "pairs": False,
        "labels": None,
        "problem_type": None,
        "license": "Apache-2.0",
        "description": "A bag of words.",
        "mask_token": "[MASK]",
        "limits": {
            "max_tokens": 32,
            "max_texts": 4,
            "max_masks": 6,
            "max_top_k": 20,
            "max_passes": 512,
            "max_body_bytes": 150_000,
        },
        "precision": "fp32",
        "graph": "stock",
        "version": __version__,
        "threads": 2,
        # the fields of text-embeddings-inference
        "model_id": "tiny",
        "model_sha": None,
        "model_dtype": "float32",
        "model_type": {},
        "served_model_name": "tiny",
        "max_concurrent_requests": 1024,
        "max_input_length": 32,
        "max_batch_tokens": 192,
        "max_batch_requests": None,
        "max_client_batch_size": 4,
        "auto_truncate": False,
        "tokenization_workers": 3,
    }
    assert client.get("/models/tiny/info").json() == info | {"architecture": architecture}


def test_overload_of_one_lane_rejects_only_its_routes(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Scores join the bulk lane. A rejection takes no time for the body.
    app = client.app
    assert isinstance(app, FastAPI)
    admission = app.state.models.default.batcher._admission
    full = {False: admission._max_tokens[False], True: 0}
    monkeypatch.setattr(admission, "_accepted", full)
    # After 503, but not after 429, clients repeat a request immediately.
    for path in ("/fill-mask", "/", "/models/tiny", "/v1/models/tiny:predict"):
        answer = client.post(path, content=b"no JSON")
        assert answer.status_code == 429
        seconds = answer.headers["Retry-After"]
        assert answer.json() == {"error": f"The service is overloaded; try again in {seconds} s."}
    assert client.post("/score", json={"inputs": "the dog"}).status_code == 200
    assert client.get("/fill-mask").status_code == 405
    full[False], full[True] = 0, admission._max_tokens[True]
    assert client.post("/score", content=b"no JSON").status_code == 429
    assert client.post("/fill-mask", json={"inputs": "[MASK]"}).status_code == 200
