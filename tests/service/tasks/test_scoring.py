"""Scores of texts per token, compared with the tiny model's oracle."""

import math
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.responses import post
from tests.service.serving import serving
from tests.service.tiny import MASK_ID, VOCABULARY, Tiny

TOLERANCE = 2e-5  # float32 sums differ from float64
TEXT = "She walks,  walking the DOG"
TOKENS = ["she", "walk", "##s", ",", "walk", "##ing", "the", "dog"]
WORDS = [0, 1, 1, 2, 3, 3, 4, 5]
SPANS = [(0, 3), (4, 8), (8, 9), (9, 10), (12, 16), (16, 19), (20, 23), (24, 27)]


def score(client: TestClient, inputs: Any, **parameters: Any) -> Any:
    """Return the response of /score."""
    return post(client, "/score", inputs=inputs, parameters=parameters)


def expected(tiny: Tiny, variant: str) -> list[float]:
    """Return the oracle's scores of TEXT, from one masked pass per token."""
    ids = [VOCABULARY.index(token) for token in ["[CLS]", *TOKENS, "[SEP]"]]
    log_probs = []
    for place, word in enumerate(WORDS):
        masked = list(ids)
        for later in range(place, len(WORDS)):
            if later == place or (variant == "within_word" and WORDS[later] == word):
                masked[later + 1] = MASK_ID
        log_probs.append(float(tiny.log_probs(masked, place + 1)[ids[place + 1]]))
    return log_probs


@pytest.mark.parametrize("variant", ["within_word", "original"])
def test_each_token_is_predicted_from_the_rest(
    variant: str, client: TestClient, tiny: Tiny
) -> None:
    # The total is the sum of the log-probabilities of all tokens.
    answer = score(client, TEXT, variant=variant)
    log_probs = expected(tiny, variant)
    assert [one["token_str"] for one in answer["tokens"]] == TOKENS
    assert [VOCABULARY[one["token"]] for one in answer["tokens"]] == TOKENS
    assert [(one["start"], one["end"]) for one in answer["tokens"]] == SPANS
    for one, log_prob in zip(answer["tokens"], log_probs, strict=True):
        assert one["log_prob"] == pytest.approx(log_prob, abs=TOLERANCE)
        assert one["surprisal"] == pytest.approx(-one["log_prob"] / math.log(2))
    assert answer["log_prob"] == pytest.approx(sum(log_probs), abs=TOLERANCE * len(TOKENS))
    mean = sum(log_probs) / len(log_probs)
    assert answer["pseudo_perplexity"] == pytest.approx(math.exp(-mean), rel=1e-4)
    assert answer["rank"] == 1


def test_the_word_is_masked_unless_told_otherwise(client: TestClient) -> None:
    answer = score(client, TEXT)
    assert answer == score(client, TEXT, variant=None)
    assert answer != score(client, TEXT, variant="original")
    # the default of targets is the usual definition of masked marginals
    answer = score(client, TEXT, targets=["dog"])
    assert answer == score(client, TEXT, targets=["dog"], variant="original")
    assert answer != score(client, TEXT, targets=["dog"], variant="within_word")


def test_variants_of_a_text_are_ranked(client: TestClient) -> None:
    # Equal texts have the same rank.
    texts = ["the dog barked", "the cat barked", "the dog barked", "the tea barked"]
    answer = score(client, texts)
    totals = [text["log_prob"] for text in answer]
    assert [text["rank"] for text in answer] == [
        1 + sum(other > total for other in totals) for total in totals
    ]
    assert answer[0] == answer[2]
    assert score(client, texts[:1]) == [{**answer[0], "rank": 1}]


def test_a_long_text_is_refused(client: TestClient) -> None:
    answer = client.post("/score", json={"inputs": "the " * 31})
    assert answer.status_code == 422
    sentence = "inputs must have at most 32 tokens, special tokens included (got 33); "
    assert answer.json()["error"].startswith(sentence)


@pytest.mark.parametrize(
    ("limits", "accepted", "refused", "reason"),
    [
        (
            {"max_passes": 5},
            ["a dog", "a cat ."],
            ["a dog", "a cat . ."],
            (
                "inputs needs 6 passes of the model, one per scored token; the limit is 5 "
                "(FILLMASK_MAX_PASSES). Use fewer or shorter texts, or set span or prefix to score "
                "only a part of each text."
            ),
        ),
        (
            {"max_bulk_tokens": 30},
            ["a dog . ."],  # 4 passes of 6 tokens
            ["a dog . . ."],
            (
                "The request must have at most 30 tokens over all its passes (got 35); send fewer "
                "or shorter texts, or raise FILLMASK_MAX_BULK_TOKENS."
            ),
        ),
    ],
)
def test_work_is_bounded(
    tiny: Tiny, limits: Any, accepted: list[str], refused: list[str], reason: str
) -> None:
    with serving(tiny.path, **limits) as client:
        assert client.post("/score", json={"inputs": accepted}).status_code == 200
        answer = client.post("/score", json={"inputs": refused})
    assert answer.status_code == 422
    assert answer.json()["error"] == reason
