"""Masked texts and their request bodies."""

from __future__ import annotations

import json
import random

import pytest

from benchmarks.comparison.texts import FILE, MASK_TOKEN, mask_words, masked_texts, request_body


def test_there_are_200_texts_with_one_to_three_masks_each() -> None:
    # Most texts have one mask. Every call returns the same texts.
    texts = masked_texts()
    counts = [text.count(MASK_TOKEN) for text in texts]
    assert len(set(texts)) == 200
    assert set(counts) == {1, 2, 3}
    assert counts.count(1) > 100
    assert texts == masked_texts()


def test_nothing_but_the_masked_words_changes() -> None:
    for original, masked in zip(
        FILE.read_text(encoding="utf-8").splitlines(), masked_texts(), strict=True
    ):
        position = 0
        for part in masked.split(MASK_TOKEN):
            position = original.index(part, position) + len(part)


@pytest.mark.parametrize(
    ("text", "count", "masked"),
    [
        ("Stop!", 1, "[MASK]!"),
        ("I don't know.", 3, "[MASK] [MASK] [MASK]."),
        ("Go on", 3, "[MASK] [MASK]"),
        ("In 1999, 2 of 3.", 3, "[MASK] 1999, 2 [MASK] 3."),
    ],
)
def test_words_are_masked_whole(text: str, count: int, masked: str) -> None:
    # An apostrophe does not split a word. A number is not a word.
    rng = random.Random(0)  # noqa: S311 - a choice, not a secret
    assert mask_words(text, count, rng) == masked


def test_body_is_the_wire_format() -> None:
    body = request_body('He said "[MASK]"\n')
    assert "\n" not in body
    assert json.loads(body) == {"inputs": 'He said "[MASK]"\n', "parameters": {"top_k": 5}}
