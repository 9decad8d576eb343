"""Joint fills of several masks, compared with a beam search by the tiny model's oracle."""

import math
from typing import Any

import pytest
from fastapi.testclient import TestClient

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import BatchOutputs, ModelPass
from fillmask.tasks.fill_mask.joint import MIN_BEAM_WIDTH, max_joint_passes
from tests.service.responses import post
from tests.service.serving import serving
from tests.service.tiny import MASK_ID, SPECIAL, VOCABULARY, Tiny

TOLERANCE = 1e-4
TEXT = "The [MASK] barked  at [MASK], she"
NAMES = ["[CLS]", "the", "[MASK]", "barked", "at", "[MASK]", ",", "she", "[SEP]"]
IDS = [VOCABULARY.index(name) for name in NAMES]
MASKS = (2, 5)


def fill(client: TestClient, text: str, **parameters: Any) -> Any:
    """Return the response of /fill-mask with the strategy `joint`."""
    own = {"strategy": "joint", **parameters}
    return post(client, "/fill-mask", inputs=text, parameters=own)


def search(tiny: Tiny, order: str, beam: int) -> list[tuple[tuple[int, ...], float]]:
    """Fill two masks by the service's beam search, with the oracle for one text at a time."""
    partials: dict[tuple[int, ...], float] = {tuple(IDS): 0.0}
    for _ in MASKS:
        grown: dict[tuple[int, ...], float] = {}
        for ids, log_prob in partials.items():
            masks = [mask for mask in MASKS if ids[mask] == MASK_ID]
            ranked = {mask: tiny.best(list(ids), mask, beam) for mask in masks}
            mask = max(masks, key=lambda m: ranked[m][0][1]) if order == "confidence" else masks[0]
            for token, more in ranked[mask]:
                filled = (*ids[:mask], token, *ids[mask + 1 :])
                grown[filled] = max(grown.get(filled, -math.inf), log_prob + more)
        kept = sorted(grown.items(), key=lambda item: -item[1])[:beam]
        partials = dict(kept)
    return [(tuple(ids[mask] for mask in MASKS), p) for ids, p in partials.items()]


@pytest.mark.parametrize("order", [None, "confidence", "left_to_right"])
@pytest.mark.parametrize("top_k", [3, 8])
def test_the_best_of_the_beam(
    client: TestClient, tiny: Tiny, order: str | None, top_k: int
) -> None:
    # A fill has a joint log-probability, and a sequence with both tokens.
    fills = fill(client, TEXT, top_k=top_k, order=order)
    expected = search(tiny, order or "confidence", max(top_k, MIN_BEAM_WIDTH))[:top_k]
    assert [tuple(one["tokens"]) for one in fills] == [tokens for tokens, _ in expected]
    for one, (tokens, log_prob) in zip(fills, expected, strict=True):
        assert one["log_prob"] == pytest.approx(log_prob, abs=TOLERANCE)
        assert one["score"] == pytest.approx(math.exp(one["log_prob"]))
        assert one["token"] == -1
        names = [VOCABULARY[token] for token in tokens]
        assert one["token_strs"] == names
        assert one["token_str"] == " ".join(names)
        assert min(tokens) >= len(SPECIAL)


def test_one_mask_is_answered_as_ever(client: TestClient) -> None:
    text = "the [MASK] barked"
    alone = client.post("/fill-mask", json={"inputs": text, "parameters": {"top_k": 7}}).json()
    for one, other in zip(fill(client, text, top_k=7), alone, strict=True):
        assert one["score"] == pytest.approx(other["score"])
        assert {key: one[key] for key in other if key != "score"} == {
            key: value for key, value in other.items() if key != "score"
        }
        assert one["tokens"] == [other["token"]]


def test_the_text_is_the_users_but_for_the_masks(client: TestClient) -> None:
    # A continuation joins the word before it, which may be a fill too.
    for one in fill(client, TEXT, top_k=20):
        first, second = one["token_strs"]
        joined = [name.removeprefix("##") for name in (first, second)]
        before = "The" if first.startswith("##") else "The "
        between = " barked  at" if second.startswith("##") else " barked  at "
        assert one["sequence"] == f"{before}{joined[0]}{between}{joined[1]}, she"


def test_passes_are_bounded(tiny: Tiny) -> None:
    # Each mask after the first needs one pass per entry of the beam.
    assert max_joint_passes(1, 5) == 1
    assert max_joint_passes(3, 5) == 11
    assert max_joint_passes(2, 20) == 21
    runs: list[ModelPass] = []
    with serving(tiny.path, max_passes=6) as client:
        batcher = client.app.state.models.default.pipelines["fill-mask"]._strategies._batcher  # type: ignore[attr-defined]
        run = batcher._run

        def counted(batch: Batch) -> BatchOutputs:
            runs.extend(batch.passes)
            outputs: BatchOutputs = run(batch)
            return outputs

        batcher._run = counted
        fill(client, TEXT)
        assert len(runs) == 6
        body = {"inputs": TEXT, "parameters": {"strategy": "joint", "top_k": 6}}
        answer = client.post("/fill-mask", json=body)
    assert answer.status_code == 422
    assert "needs 7 passes of the model; the limit is 6" in answer.json()["error"]
