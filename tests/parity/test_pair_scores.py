"""Scores of texts and pairs over HTTP, compared with one pass of transformers per token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.parity.served import TOLERANCE, Served, serve
from tests.parity.test_pair_fills import KINDS

PAIRS = [
    {"text": "Where is she?", "text_pair": "She is in Rome, and Rome is old!"},
    {"text": "The capital of France is Paris.", "text_pair": "tea"},
]
VARIANTS = ["within_word", "original"]


@pytest.fixture(scope="module", params=KINDS)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """Service of a random checkpoint of each family that reads pairs."""
    with serve(tmp_path_factory.mktemp("scores"), request.param, "ForMaskedLM") as one:
        yield one


@torch.inference_mode()
def log_probs(served: Served, variant: str, *texts: str) -> list[float]:
    """Return the log-probability of each token of a text or a pair, by transformers.

    The variant within_word does not mask an equal word in the other text of the pair.
    """
    encoded = served.tokenizer(*texts, return_tensors="pt")
    parts, words = encoded.sequence_ids(0), encoded.word_ids(0)
    ids = encoded["input_ids"][0].tolist()
    own = [place for place, part in enumerate(parts) if part is not None]
    found = []
    for place in own:
        same = [
            other
            for other in own
            if other >= place and (parts[other], words[other]) == (parts[place], words[place])
        ]
        masked = {name: values.clone() for name, values in encoded.items()}
        hidden = same if variant == "within_word" else [place]
        masked["input_ids"][0, hidden] = served.tokenizer.mask_token_id
        logits = served.model(**masked).logits[0, place]
        found.append(torch.log_softmax(logits, -1)[ids[place]].item())
    return found


def check_part(part: dict[str, Any], whole: list[dict[str, Any]], expected: list[float]) -> None:
    """Check the scores of a part of a text against those of all its tokens.

    Args:
        part: the response for the part.
        whole: tokens of the part in the response for the whole text.
        expected: log-probabilities of these tokens.
    """
    positions = [(token["token"], token["start"], token["end"]) for token in part["tokens"]]
    assert positions == [(token["token"], token["start"], token["end"]) for token in whole]
    found = [token["log_prob"] for token in part["tokens"]]
    assert found == pytest.approx(expected, abs=TOLERANCE)
    assert part["log_prob"] == pytest.approx(sum(expected), abs=TOLERANCE * len(expected))


@pytest.mark.parametrize("variant", VARIANTS)
def test_scores_of_pairs(served: Served, variant: str) -> None:
    answers = served.post("/score", PAIRS, variant=variant)
    for pair, ours in zip(PAIRS, answers, strict=True):
        encoded = served.tokenizer(pair["text"], pair["text_pair"], return_offsets_mapping=True)
        parts, offsets = encoded.sequence_ids(0), encoded["offset_mapping"]
        own = [place for place, part in enumerate(parts) if part is not None]
        assert [token["token"] for token in ours["tokens"]] == [
            encoded["input_ids"][place] for place in own
        ]
        expected = log_probs(served, variant, pair["text"], pair["text_pair"])
        found = [token["log_prob"] for token in ours["tokens"]]
        assert found == pytest.approx(expected, abs=TOLERANCE)
        assert ours["log_prob"] == pytest.approx(sum(expected), abs=TOLERANCE * len(own))
        for place, token in zip(own, ours["tokens"], strict=True):
            part = ("text", "text_pair")[parts[place]]
            start, end = offsets[place]
            assert token["part"] == part
            written = pair[part][token["start"] : token["end"]]
            assert written.strip() == pair[part][start:end].strip()
            assert start <= token["start"] <= token["end"] <= end


def indices_of_part(tokens: list[dict[str, Any]], start: int, end: int) -> list[int]:
    """Return the indices of the tokens within these characters.

    Several tokens may have the same characters. A token without characters belongs to the
    characters before it.
    """
    return [
        i
        for i, one in enumerate(tokens)
        if start <= one["start"] and one["end"] <= end and (start < one["end"] or start == 0)
    ]


@pytest.mark.parametrize("variant", VARIANTS)
def test_scores_of_a_part(served: Served, variant: str) -> None:
    # The spans are at the start, in the middle and at the end, and may divide a word.
    text = PAIRS[1]["text"]
    [whole] = served.post("/score", [text], variant=variant)
    tokens, count = whole["tokens"], len(whole["tokens"])
    expected = log_probs(served, variant, text)
    for first, last in ((0, 1), (count // 3, 2 * count // 3), (count - 2, count - 1)):
        start, end = tokens[first]["start"], tokens[last]["end"]
        own = indices_of_part(tokens, start, end)
        [ours] = served.post("/score", [text], variant=variant, span=[start, end])
        check_part(ours, [tokens[i] for i in own], [expected[i] for i in own])
        assert own
    for first in (2, count // 2, count - 1):
        start = tokens[first]["start"]
        own = indices_of_part(tokens, start, len(text))
        [ours] = served.post("/score", [text], variant=variant, prefix=text[:start])
        check_part(ours, [tokens[i] for i in own], [expected[i] for i in own])
        assert own


@pytest.mark.parametrize("variant", VARIANTS)
def test_scores_of_a_part_of_a_pair(served: Served, variant: str) -> None:
    pair = PAIRS[0]
    [whole] = served.post("/score", [pair], variant=variant)
    expected = log_probs(served, variant, pair["text"], pair["text_pair"])
    scored = list(zip(whole["tokens"], expected, strict=True))
    for part in ("text", "text_pair"):
        tokens, own = zip(*(one for one in scored if one[0]["part"] == part), strict=True)
        [ours] = served.post("/score", [pair], variant=variant, part=part)
        check_part(ours, list(tokens), list(own))
        assert {token["part"] for token in ours["tokens"]} == {part}
        prefix = pair[part][: tokens[-1]["start"]]
        [ours] = served.post("/score", [pair], variant=variant, part=part, prefix=prefix)
        check_part(ours, list(tokens[-1:]), list(own[-1:]))


def test_tokens_of_single_texts_have_no_part(served: Served) -> None:
    [alone] = served.post("/score", ["Rome is old!"])
    [as_object] = served.post("/score", [{"text": "Rome is old!"}])
    assert alone == as_object
    assert list(alone["tokens"][0]) == [
        *("token", "token_str", "start", "end", "log_prob", "surprisal")
    ]
