"""Fills of pairs over HTTP, compared with transformers on the tokenizer's encoding of the pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.parity.served import TEXTS, TOLERANCE, Served, serve

KINDS = ["BERT", "RoBERTa", "ALBERT", "ELECTRA", "MPNet", "XLM-RoBERTa"]
TOP_K = 8
# name of a case -> (first text, second text), in which {} is the mask
PAIRS = {
    "mask in the first text": ("The capital of {} is Rome.", "Rome is old!"),
    "mask in the second text": ("Where is she?", "She is in {}, and Rome is old!"),
    "masks in both texts": ("{} is the capital, and {} is old!", "The capital is {}"),
    "masks at the borders": ("The capital is {}", "{} is old!"),
}


@pytest.fixture(scope="module", params=KINDS)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """Service of a random checkpoint of each family that reads pairs."""
    with serve(tmp_path_factory.mktemp("fills"), request.param, "ForMaskedLM") as one:
        yield one


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Service of a random BERT, which reads the token types of pairs."""
    with serve(tmp_path_factory.mktemp("bert"), "BERT", "ForMaskedLM") as one:
        yield one


def with_masks(served: Served, name: str) -> dict[str, str]:
    first, second = PAIRS[name]
    mask = served.tokenizer.mask_token
    return {"text": first.replace("{}", mask), "text_pair": second.replace("{}", mask)}


@torch.inference_mode()
def log_probs(served: Served, encoded: Any, position: int) -> Tensor:
    """Return the log-probabilities (V,) of transformers at a position."""
    return torch.log_softmax(served.model(**encoded).logits[0, position], -1)


def mask_positions(served: Served, encoded: Any) -> list[int]:
    ids = encoded["input_ids"][0].tolist()
    return [i for i, token in enumerate(ids) if token == served.tokenizer.mask_token_id]


def chain(served: Served, encoded: Any, position: int, tokens: Sequence[int]) -> float:
    """Return the log-probability of several tokens in place of one mask, by the chain rule."""
    total = 0.0
    mask = served.tokenizer.mask_token_id
    for done in range(len(tokens)):
        inserted = [*tokens[:done], *[mask] * (len(tokens) - done)]
        changed = {}
        for name, values in encoded.items():
            own = values[0].tolist()
            new = inserted if name == "input_ids" else [own[position]] * len(tokens)
            changed[name] = torch.tensor([own[:position] + new + own[position + 1 :]])
        total += log_probs(served, changed, position + done)[tokens[done]].item()
    return total


@pytest.mark.parametrize("case", PAIRS)
def test_fills_of_a_pair(served: Served, case: str) -> None:
    # Tokens and scores are those of transformers, except for special tokens.
    pair = with_masks(served, case)
    encoded = served.encode(**pair)
    positions = mask_positions(served, encoded)
    ours = served.post("/fill-mask", pair, top_k=TOP_K)
    ours = [ours] if len(positions) == 1 else ours
    # transformers also lists the symbols that are always one token, such as "("
    every = zip(served.tokenizer.all_special_ids, served.tokenizer.all_special_tokens, strict=True)
    special = [token_id for token_id, token in every if token[0] in "[<"]
    joined = f"{pair['text']} {pair['text_pair']}"
    for position, fills in zip(positions, ours, strict=True):
        expected = log_probs(served, encoded, position).exp()
        expected[special] = 0
        best, _ = expected.topk(TOP_K)
        assert [fill["score"] for fill in fills] == pytest.approx(best.tolist(), abs=TOLERANCE)
        own = [expected[fill["token"]].item() for fill in fills]
        assert [fill["score"] for fill in fills] == pytest.approx(own, abs=TOLERANCE)
    if len(positions) == 1:
        before, after = joined.split(served.tokenizer.mask_token)
        for fill in ours[0]:
            assert fill["sequence"].startswith(before.rstrip())
            assert fill["sequence"].endswith(after.lstrip())
            assert fill["token_str"].strip().removeprefix("##") in fill["sequence"]


def test_a_pair_depends_on_its_second_text(served: Served) -> None:
    # Other tests detect a missing second text only if the fills depend on this text.
    first = f"The capital is {served.tokenizer.mask_token}"
    alone = served.post("/fill-mask", first)
    pairs = [{"text": first, "text_pair": second} for second in ("Rome is old!", "She is.")]
    one, other = served.post("/fill-mask", pairs)
    assert alone != one != other
    assert served.post("/fill-mask", {"text": first}) == alone
    assert served.post("/fill-mask", {"text": first, "text_pair": None}) == alone


@pytest.mark.parametrize("case", PAIRS)
def test_targets_in_a_pair(bert: Served, case: str) -> None:
    # The targets have one or several tokens.
    pair = with_masks(bert, case)
    encoded = bert.encode(**pair)
    targets = ["rome", "capital of france", "tea cup", "she"]
    positions = mask_positions(bert, encoded)
    ours = bert.post("/fill-mask", pair, targets=targets)
    for position, fills in zip(positions, [ours] if len(positions) == 1 else ours, strict=True):
        assert {fill["token_str"] for fill in fills} == set(targets)
        for fill in fills:
            expected = chain(bert, encoded, position, fill["tokens"])
            assert fill["log_prob"] == pytest.approx(expected, abs=TOLERANCE)
        assert any(len(fill["tokens"]) > 1 for fill in fills)


@pytest.mark.parametrize("case", PAIRS)
def test_words_in_a_pair(bert: Served, case: str) -> None:
    pair = with_masks(bert, case)
    encoded = bert.encode(**pair)
    positions = mask_positions(bert, encoded)
    ours = bert.post("/fill-mask", pair, granularity="word", max_word_tokens=2, top_k=5)
    for position, fills in zip(positions, [ours] if len(positions) == 1 else ours, strict=True):
        assert len(fills) == 5
        for fill in fills:
            expected = chain(bert, encoded, position, fill["tokens"])
            assert fill["log_prob"] == pytest.approx(expected, abs=TOLERANCE)


def test_joint_fills_of_a_pair(bert: Served) -> None:
    pair = with_masks(bert, "masks in both texts")
    encoded = bert.encode(**pair)
    positions = mask_positions(bert, encoded)
    fills = bert.post("/fill-mask", pair, strategy="joint", order="left_to_right")
    assert len(fills) == 5
    for fill in fills:
        filled, expected = {name: value.clone() for name, value in encoded.items()}, 0.0
        for position, token in zip(positions, fill["tokens"], strict=True):
            expected += log_probs(bert, filled, position)[token].item()
            filled["input_ids"][0, position] = token
        assert fill["log_prob"] == pytest.approx(expected, abs=TOLERANCE)


def test_windows_of_a_pair(bert: Served) -> None:
    # A window contains a part of the first text and the entire second text.
    mask = bert.tokenizer.mask_token
    words = (f"{TEXTS[0]} {TEXTS[2]} " * 12).split()
    text = " ".join([*words[:60], mask, *words[60:]])
    second = "Where is she?"
    pair = {"text": text, "text_pair": second}
    too_long = bert.client.post("/fill-mask", json={"inputs": pair})
    assert too_long.status_code == 422
    fills = bert.post("/fill-mask", pair, on_long_text="window")
    start, end = fills[0]["window"]
    assert 0 < start < text.index(mask) < end < len(text)
    encoded = bert.encode(text[start:end], second)
    assert encoded["input_ids"].shape[1] == pytest.approx(70, abs=3)
    [position] = mask_positions(bert, encoded)
    expected = log_probs(bert, encoded, position).exp()
    for fill in fills:
        assert fill["window"] == [start, end]
        assert fill["score"] == pytest.approx(expected[fill["token"]].item(), abs=TOLERANCE)
        before, after = f"{text} {second}".split(mask)
        assert fill["sequence"].startswith(before.strip())
        assert fill["sequence"].endswith(after.strip())
