"""Pipeline for fills, with the tokenizer, batcher and runtime of the tiny model."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from fillmask.errors import InvalidRequestError
from fillmask.results.fills import Fill
from tests.service.tiny import SPECIAL, VOCABULARY, Tiny
from tests.service.tiny_calls import fill, make_tokenizer

TOLERANCE = 2e-5  # float32 sums differ from float64


def check(tiny: Tiny, text: str, masks: Sequence[Sequence[Fill]], top_k: int) -> None:
    """Compare the fills of a text with the oracle's fills for this text alone."""
    encoded = make_tokenizer(tiny).encode(text)
    assert len(masks) == len(encoded.mask_positions)
    for fills, position in zip(masks, encoded.mask_positions.tolist(), strict=True):
        expected = tiny.best(encoded.input_ids.tolist(), position, top_k)
        assert [one.token for one in fills] == [token for token, _ in expected]
        np.testing.assert_allclose(
            [math.log(one.score) for one in fills], [p for _, p in expected], atol=TOLERANCE
        )


async def test_many_texts_of_many_lengths(tiny: Tiny) -> None:
    # The oracle computes each text separately.
    texts = [f"{'the dog ' * (i % 12)}[MASK] {'cat ' * (i % 5)}" for i in range(40)]
    texts += ["a [MASK] of [MASK] and [MASK]"]
    for text, masks in zip(texts, await fill(tiny, texts, top_k=4), strict=True):
        check(tiny, text, masks, 4)


async def test_five_fills_by_default(tiny: Tiny) -> None:
    [[fills]] = await fill(tiny, ["the [MASK]"])
    assert len(fills) == 5
    assert [f.score for f in fills] == sorted((f.score for f in fills), reverse=True)


async def test_special_tokens_are_never_offered(tiny: Tiny) -> None:
    # The request asks for as many fills as there are ordinary tokens.
    ordinary = len(VOCABULARY) - len(SPECIAL)
    [[fills]] = await fill(tiny, ["the [MASK] of"], top_k=ordinary)
    assert {one.token for one in fills} == set(range(len(SPECIAL), len(VOCABULARY)))


async def test_token_str_and_sequence(tiny: Tiny) -> None:
    [[fills]] = await fill(tiny, ["The  [MASK], here"], targets=["dog", "##s"])
    assert {(one.token_str, one.sequence) for one in fills} == {
        ("dog", "The  dog, here"),
        ("##s", "Thes, here"),
    }


async def test_targets_are_ranked_with_their_own_probabilities(tiny: Tiny) -> None:
    # The score of a target is its probability over the entire vocabulary.
    text = "the [MASK] and [MASK]"
    targets = ["dog", "cat", "tea"]
    [masks] = await fill(tiny, [text], targets=targets)
    encoded = make_tokenizer(tiny).encode(text)
    for fills, position in zip(masks, encoded.mask_positions.tolist(), strict=True):
        expected = tiny.log_probs(encoded.input_ids.tolist(), position)
        by_target = {target: expected[VOCABULARY.index(target)] for target in targets}
        assert [f.token_str for f in fills] == sorted(by_target, key=lambda t: -by_target[t])
        for one in fills:
            assert abs(math.log(one.score) - by_target[one.token_str]) < TOLERANCE


async def test_top_k_cuts_the_targets(tiny: Tiny) -> None:
    [[all_of_them]] = await fill(tiny, ["the [MASK]"], targets=["dog", "cat", "tea"])
    [[best]] = await fill(tiny, ["the [MASK]"], top_k=2, targets=["dog", "cat", "tea"])
    assert [one.token for one in best] == [one.token for one in all_of_them[:2]]


@pytest.mark.parametrize(
    ("texts", "targets", "reason"),
    [
        (["the dog"], None, "inputs has no mask; write [MASK] in place of a word."),
        (
            ["the [MASK]", "the dog"],
            None,
            "inputs[1] has no mask; write [MASK] in place of a word.",
        ),
        (
            ["[MASK]", "dog " * 40 + "[MASK]"],
            None,
            (
                "inputs[1] must have at most 32 tokens, special tokens included (got 43); shorten "
                "it or set on_long_text to window."
            ),
        ),
        (
            [" " * 2049 + "[MASK]"],
            None,
            (
                "inputs must have at most 2048 characters (got 2055), because the model reads at "
                "most 32 tokens; shorten it or set on_long_text to window."
            ),
        ),
        (
            ["[MASK] " * 8] * 3,
            None,
            (
                "The request must have at most 20 masks (got 24); send fewer or raise "
                "FILLMASK_MAX_MASKS."
            ),
        ),
        (
            ["[MASK]"],
            ["Paris", "paris"],
            'The targets "Paris" and "paris" have the same tokens; remove one of them.',
        ),
    ],
)
async def test_rejects(
    texts: list[str], targets: list[str] | None, reason: str, tiny: Tiny
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await fill(tiny, texts, targets=targets, max_masks=20)
    assert caught.value.text == reason
