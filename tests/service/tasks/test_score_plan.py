"""Scores of a part of a text, compared with the tiny model's oracle on the whole text."""

import math
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from fillmask.engine.passes import NO_POSITIONS
from fillmask.errors import InvalidRequestError
from fillmask.parameters.texts import InputText, TextPair
from fillmask.tasks.score.parameters import ScoreParameters
from fillmask.tasks.score.plan import plan_scores
from fillmask.tokenization.encoded_text import EncodedWords
from tests.service.tasks.test_scoring import SPANS, TEXT, TOKENS, TOLERANCE, expected, score
from tests.service.tiny import MASK_ID, VOCABULARY, Tiny
from tests.service.tiny_calls import make_tokenizer

PAIR = TextPair("the dog", "the cat barked")
CUT = "include the whole token or leave it out."


@pytest.mark.parametrize(
    ("parameters", "first", "last"),
    [
        ({"span": [0, 9]}, 0, 2),
        ({"span": [20, 27]}, 6, 7),
        ({"span": [10, 20]}, 4, 5),  # with the spaces around a word
        ({"span": [8, 12]}, 2, 3),  # from the middle of a word
        ({"span": [4, 8]}, 1, 1),  # to the middle of a word
        ({"prefix": "She walks, "}, 4, 7),
        ({"prefix": "She walks,"}, 4, 7),
        ({"prefix": "She walk"}, 2, 7),
        ({"part": "text"}, 0, 7),
        ({"part": "text", "span": [24, 27]}, 7, 7),
    ],
)
def test_tokens_of_a_part(
    client: TestClient, tiny: Tiny, parameters: dict[str, Any], first: int, last: int
) -> None:
    # A token has the same score as in the whole text.
    own = slice(first, last + 1)
    log_probs = expected(tiny, "within_word")[own]
    answer = score(client, TEXT, **parameters)
    assert [one["token_str"] for one in answer["tokens"]] == TOKENS[own]
    assert [(one["start"], one["end"]) for one in answer["tokens"]] == SPANS[own]
    found = [one["log_prob"] for one in answer["tokens"]]
    assert found == pytest.approx(log_probs, abs=TOLERANCE)
    assert answer["log_prob"] == pytest.approx(sum(log_probs), abs=TOLERANCE * len(found))
    mean = sum(log_probs) / len(log_probs)
    assert answer["pseudo_perplexity"] == pytest.approx(math.exp(-mean), rel=1e-4)


def test_positions_count_code_points(client: TestClient) -> None:
    answer = score(client, "😀 the dog", span=[2, 5])
    assert [(one["token_str"], one["start"]) for one in answer["tokens"]] == [("the", 2)]


def test_ranks_compare_the_scored_tokens(client: TestClient) -> None:
    # Each text has its own parameters, or all texts have the same prefix.
    texts = ["the dog barked", "the cat barked at the mailman", "the tea barked"]
    each = [{"prefix": "the dog"}, {"span": [4, 7]}, None]
    body = {"inputs": texts, "parameters": each}
    answer = client.post("/score", json=body).json()
    counts = [len(one["tokens"]) for one in answer]
    assert counts == [1, 1, 3]
    same = score(client, texts, prefix="the ")
    assert [len(one["tokens"]) for one in same] == [2, 5, 2]
    for scores in (answer, same):
        totals = [one["log_prob"] for one in scores]
        assert [one["rank"] for one in scores] == [
            1 + sum(other > total for other in totals) for total in totals
        ]


@pytest.mark.parametrize(("variant", "later"), [("within_word", "[MASK]"), ("original", "##ing")])
def test_a_word_across_the_end_of_the_span(tiny: Tiny, variant: Any, later: str) -> None:
    # The variant within_word also masks the later tokens of the word that are not scored.
    words = make_tokenizer(tiny).encode_words(TEXT)
    plan = plan_scores(
        TEXT, words, ScoreParameters(variant=variant, span=(12, 16)), NO_POSITIONS, "inputs"
    )
    [only] = plan.passes(MASK_ID)
    names = [VOCABULARY[token] for token in only.input_ids]
    assert names == ["[CLS]", *TOKENS[:4], "[MASK]", later, *TOKENS[6:], "[SEP]"]
    assert only.mask_positions.tolist() == [5]
    assert [VOCABULARY[token] for token in only.target_ids[0]] == ["walk"]


@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        (ScoreParameters(), [0, 1, 2, 3]),
        (ScoreParameters(span=(0, 3)), [0, 1, 2]),
        (ScoreParameters(span=(3, 7)), [3]),
        (ScoreParameters(prefix="Hi "), [3]),
        (ScoreParameters(prefix="Hi"), [2, 3]),
    ],
)
def test_a_token_without_characters_is_in_one_part(
    options: ScoreParameters, tokens: list[int]
) -> None:
    # Byte-level tokenizers give the first of two spaces the span (3, 3).
    count = np.arange(4)
    words = EncodedWords(count, count, ((0, 1), (1, 2), (3, 3), (4, 7)), count, np.zeros(4, int))
    assert plan_scores("Hi  you", words, options, NO_POSITIONS, "inputs").scored.tolist() == tokens


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (ScoreParameters(), ["the", "dog", "the", "cat", "barked"]),
        (ScoreParameters(part="text"), ["the", "dog"]),
        (ScoreParameters(part="text_pair"), ["the", "cat", "barked"]),
        (ScoreParameters(part="text", span=(4, 7)), ["dog"]),
        (ScoreParameters(part="text_pair", span=(4, 7)), ["cat"]),
        (ScoreParameters(part="text_pair", prefix="the cat "), ["barked"]),
    ],
)
def test_parts_of_a_pair(tiny: Tiny, options: ScoreParameters, names: list[str]) -> None:
    # A span and a prefix count the characters of the part.
    words = make_tokenizer(tiny).encode_words(PAIR)
    plan = plan_scores(PAIR, words, options, NO_POSITIONS, "inputs")
    assert [VOCABULARY[token] for token in plan.tokens] == names
    assert [str(PAIR)[start:end] for start, end in plan.spans] == names


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"span": [1, 7]}, f'"the" of inputs, which starts at character 0 and ends at 3; {CUT}'),
        ({"span": [3, 4]}, "span selects no token of inputs; include at least one word."),
        (
            {"prefix": "the d"},
            (
                'prefix cuts the token "dog" of inputs, which starts at character 4 and ends at 7; '
                f"{CUT}"
            ),
        ),
        ({"prefix": "the dog"}, "inputs has no tokens after prefix; shorten prefix."),
        ({"part": "text_pair"}, "inputs has no text_pair; remove part or add text_pair."),
    ],
)
def test_parts_that_do_not_fit(client: TestClient, parameters: dict[str, Any], reason: str) -> None:
    answer = client.post("/score", json={"inputs": "the dog", "parameters": parameters})
    assert answer.status_code == 422
    assert reason in answer.json()["error"]


@pytest.mark.parametrize(
    ("pair", "options", "reason"),
    [
        (
            PAIR,
            ScoreParameters(span=(0, 3)),
            "inputs[1] is a pair; with span, set part to text or text_pair.",
        ),
        (
            PAIR,
            ScoreParameters(prefix=""),
            "inputs[1] is a pair; with prefix, set part to text or text_pair.",
        ),
        (
            PAIR,
            ScoreParameters(part="text", span=(4, 8)),
            "span must end at 7 or before, because inputs[1].text has 7 characters (got [4, 8]).",
        ),
        (
            PAIR,
            ScoreParameters(part="text_pair", prefix="the c"),
            (
                'prefix cuts the token "cat" of inputs[1].text_pair, which starts at character 4 '
                f"and ends at 7; {CUT}"
            ),
        ),
        (
            TextPair("the dog", "\u200b"),
            ScoreParameters(part="text_pair"),
            "inputs[1].text_pair has no tokens; write at least one word.",
        ),
    ],
)
def test_parts_that_do_not_fit_a_pair(
    tiny: Tiny, pair: InputText, options: ScoreParameters, reason: str
) -> None:
    words = make_tokenizer(tiny).encode_words(pair)
    with pytest.raises(InvalidRequestError) as caught:
        plan_scores(pair, words, options, NO_POSITIONS, "inputs[1]")
    assert caught.value.text == reason
