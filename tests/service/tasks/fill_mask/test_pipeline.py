"""Pipeline for fills, with the tokenizer, batcher and runtime of the tiny model."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from fillmask.errors import InvalidRequestError
from fillmask.tasks.fill_mask.results import Fill
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


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["the [MASK]", "the dog"], "inputs[1] has no mask; write [MASK] in place of a word."),
        (
            ["[MASK]", "dog " * 40 + "[MASK]"],
            (
                "inputs[1] must have at most 32 tokens, special tokens included (got 43); shorten "
                "it or set on_long_text to window."
            ),
        ),
        (
            [" " * 2049 + "[MASK]"],
            (
                "inputs must have at most 2048 characters (got 2055), because the model reads at "
                "most 32 tokens; shorten it or set on_long_text to window."
            ),
        ),
        (
            ["[MASK] " * 8] * 3,
            (
                "The request must have at most 20 masks (got 24); send fewer or raise "
                "FILLMASK_MAX_MASKS."
            ),
        ),
    ],
)
async def test_rejects(texts: list[str], reason: str, tiny: Tiny) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await fill(tiny, texts, max_masks=20)
    assert caught.value.text == reason
