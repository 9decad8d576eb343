"""Scores of targets, compared with scores from one masked pass per token."""

import math
import tracemalloc
from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest

from fillmask.engine.batcher import Batcher
from fillmask.errors import InvalidRequestError
from fillmask.tasks.fill_mask.parameters import FillMaskParameters
from fillmask.tasks.fill_mask.results import Fill, TargetFill
from fillmask.tasks.fill_mask.targets import Targets, check_targets_size
from fillmask.tasks.pipeline import Inputs
from tests.service import tiny_calls
from tests.service.tiny import MASK_ID, MAX_TOKENS, VOCABULARY, Tiny
from tests.service.tiny_calls import make_tokenizer

TOLERANCE = 2e-5  # float32 sums differ from float64
TEXT = "the [MASK] barked at the [MASK]."
TARGETS = ["dog", "walks", "walking", "run", "a dog", "a cat", "a dog barked", "##s"]


async def fill(
    tiny: Tiny,
    texts: Sequence[str],
    targets: Sequence[str],
    top_k: int | None = None,
    max_passes: int = 100,
) -> Sequence[Sequence[Sequence[Fill]]]:
    return await tiny_calls.fill(tiny, texts, top_k, targets, max_passes=max_passes)


def reference(tiny: Tiny, text: str, mask: int, token_ids: Sequence[int]) -> float:
    """Score a target with one pass per token.

    Each pass contains the earlier tokens of the target and masks for the others.
    """
    encoded = make_tokenizer(tiny).encode(text)
    position = int(encoded.mask_positions[mask])
    before, after = encoded.input_ids[:position], encoded.input_ids[position + 1 :]
    total = 0.0
    for place, token_id in enumerate(token_ids):
        masks = [MASK_ID] * (len(token_ids) - place)
        ids = [*before.tolist(), *token_ids[:place], *masks, *after.tolist()]
        total += float(tiny.log_probs(ids, position + place)[token_id])
    return total


async def test_scores_are_those_of_one_pass_a_token(tiny: Tiny) -> None:
    texts = [TEXT, "she drank [MASK]", "[MASK]"]
    tokenizer = make_tokenizer(tiny)
    for text, masks in zip(texts, await fill(tiny, texts, TARGETS), strict=True):
        for mask, fills in enumerate(masks):
            expected = {
                tokenizer.encode_target(t): reference(tiny, text, mask, tokenizer.encode_target(t))
                for t in TARGETS
            }
            total = np.logaddexp.reduce(list(expected.values()))
            assert len(fills) == len(TARGETS)
            for one in fills:
                assert isinstance(one, TargetFill)
                log_prob = expected.pop(one.tokens)
                assert abs(one.log_prob - log_prob) < TOLERANCE * len(one.tokens)
                assert math.isclose(one.score, math.exp(one.log_prob))
                assert math.isclose(one.target_score, math.exp(log_prob - total), rel_tol=1e-3)
            assert not expected
            log_probs = [one.log_prob for one in fills if isinstance(one, TargetFill)]
            assert log_probs == sorted(log_probs, reverse=True)


async def test_target_is_shown_as_it_was_written(tiny: Tiny) -> None:
    # The value of token_str is the target as in the request.
    [[fills]] = await fill(tiny, ["The [MASK], here"], ["Walking", "Dog", "a Dog"])
    shown = {(one.token, one.token_str, one.sequence) for one in fills}
    assert shown == {
        (-1, "Walking", "The Walking, here"),
        (VOCABULARY.index("dog"), "dog", "The dog, here"),
        (-1, "a Dog", "The a Dog, here"),
    }


async def test_top_k_cuts_the_targets(tiny: Tiny) -> None:
    [[every]] = await fill(tiny, ["the [MASK]"], TARGETS)
    [[best]] = await fill(tiny, ["the [MASK]"], TARGETS, top_k=3)
    assert [one.token_str for one in best] == [one.token_str for one in every[:3]]


async def test_targets_that_begin_alike_share_passes(tiny: Tiny) -> None:
    # Targets of one token share one pass. Longer targets need one pass per length and prefix.
    # dog; walk+s and walk+ing; a+dog, a+cat; a+dog+barked
    found = Targets.resolve(make_tokenizer(tiny), TARGETS, max_passes=100)
    prefixes = {(step.length, len(step.prefix)) for step in found.spaced.groups}
    assert prefixes == {(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)}
    assert len(found.spaced.groups) == 1 + 3 + 3
    assert found.longest == 3
    assert len((await fill(tiny, ["a [MASK]"], TARGETS, max_passes=7))[0][0]) == len(TARGETS)
    limit = r"needs 7 passes of the model; the limit is 6 \(FILLMASK_MAX_PASSES\)\."
    with pytest.raises(InvalidRequestError, match=limit):
        await fill(tiny, ["a [MASK]"], TARGETS, max_passes=6)
    with pytest.raises(InvalidRequestError, match="needs 13 passes"):
        await fill(tiny, [TEXT], TARGETS, max_passes=12)


async def test_any_number_of_targets_of_one_token_is_one_pass(tiny: Tiny) -> None:
    words = [word for word in VOCABULARY if word.isalpha()]
    [masks] = await fill(tiny, [TEXT], words, max_passes=1)
    assert [len(fills) for fills in masks] == [len(words)] * 2


async def test_text_must_have_room_for_the_longest_target(tiny: Tiny) -> None:
    text = "the " * (MAX_TOKENS - 4) + "[MASK]"
    assert await fill(tiny, [text], ["a dog"])
    with pytest.raises(InvalidRequestError, match=r"\(got 33 with 3 in place of a mask\)"):
        await fill(tiny, [text], ["a dog barked"])
    with pytest.raises(InvalidRequestError, match=r"inputs\[1\] must have .* \(got 33 with"):
        await fill(tiny, ["[MASK]", text], ["a dog barked"])


@pytest.mark.parametrize(
    ("targets", "reason"),
    [
        (["\u200b"], "has no tokens; write at least one word."),
        (
            ["a dog", "A  dog"],
            'The targets "a dog" and "A  dog" have the same tokens; remove one of them.',
        ),
        (["dog " * 80], "must have at most 256 characters (got 320)."),
    ],
)
async def test_targets_that_cannot_be_used(tiny: Tiny, targets: list[str], reason: str) -> None:
    # The service does not replace an invalid target with another target.
    with pytest.raises(InvalidRequestError) as caught:
        await fill(tiny, ["the [MASK]"], targets)
    assert reason in caught.value.text


async def test_error_names_five_targets_and_counts_the_rest(tiny: Tiny) -> None:
    with pytest.raises(InvalidRequestError, match=r'^The request has 7 .*"x0".*"x4"') as caught:
        await fill(tiny, ["the [MASK]"], ["dog", *(f"x{i}" for i in range(7))])
    assert '"x5"' not in caught.value.text


def test_targets_of_many_tokens_are_rejected_before_all_are_tokenized(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = make_tokenizer(tiny)
    looked_up = 0
    encode_target = tokenizer.encode_target

    def count(target: str) -> tuple[int, ...]:
        nonlocal looked_up
        looked_up += 1
        return encode_target(target)

    monkeypatch.setattr(tokenizer, "encode_target", count)
    words = [word for word in VOCABULARY if word.isalpha()]
    targets = [f"{a} {b} dog" for a in words for b in words]
    with pytest.raises(InvalidRequestError, match=r"per mask than the limit, 20 \(FILLMASK"):
        Targets.resolve(tokenizer, targets, max_passes=20)
    assert looked_up < 25


async def test_targets_are_bounded_in_bytes(tiny: Tiny) -> None:
    # The check precedes tokenization. The limit leaves room for 10,000 words.
    with pytest.raises(InvalidRequestError) as caught:
        await fill(tiny, ["the [MASK]"], [f"{i:05}" + "é" * 11 for i in range(9_800)])
    assert caught.value.text == (
        "The targets of a request must have at most 262144 bytes in UTF-8 (got 264600)."
    )
    check_targets_size([[f"{i:05}" + "x" * 21 for i in range(10_000)]])
    with pytest.raises(InvalidRequestError, match=r"\(got 300000\)"):
        check_targets_size([["x" * 100_000], ["y" * 200_000]])


async def test_targets_of_all_texts_are_bounded_together(tiny: Tiny) -> None:
    # Texts with the same targets count them once.
    pipeline = tiny_calls.make_pipeline(tiny, cast("Batcher", None))  # plans use no batcher
    first, second = (FillMaskParameters(targets=(letter * 200_000,)) for letter in "xy")
    with pytest.raises(InvalidRequestError, match=r"at most 262144 bytes in UTF-8 \(got 400000\)"):
        await pipeline.plan(Inputs(["the [MASK]"] * 3, [first, second, first]))


def test_size_of_targets_is_close_to_their_memory(tiny: Tiny) -> None:
    # The estimate also counts integers that Python shares.
    tokenizer = make_tokenizer(tiny)
    words = [word for word in VOCABULARY if word.isalpha()]
    texts = [f"{a} {b}" for a in words for b in words]
    refused = [f"x{i}" for i in range(500)]
    for given in (texts, texts[:50] + refused, words):
        tracemalloc.start()
        copies = tuple(f" {text}"[1:] for text in given)
        targets = Targets.resolve(tokenizer, copies, max_passes=1_000)
        allocated, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert 0.98 <= targets.size_bytes / allocated < 2, given[:1]
