"""Responses of the comparison's FastAPI application."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.comparison.servers.session import fills
from fillmask.tokenization.tokenizer import Tokenizer
from tests.service.tiny import MASK_ID, SPECIAL, VOCABULARY, build_tokenizer

TOKENIZER = Tokenizer(
    build_tokenizer().to_str().encode(), "[MASK]", MASK_ID, list(range(len(SPECIAL)))
)


def _logits(masks: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    rng = np.random.default_rng(3)
    return rng.normal(size=(masks, len(VOCABULARY))).astype(np.float32)


def test_one_mask_is_a_list_of_fills_by_descending_probability() -> None:
    # Scores equal the softmax over the entire vocabulary in float64 to 1e-6.
    text = "the [MASK] barked ."
    logits_MV = _logits(1)
    answer = fills(TOKENIZER, text, TOKENIZER.encode(text), logits_MV, top_k=4)
    exact_V = np.exp(logits_MV[0].astype(np.float64))
    exact_V /= exact_V.sum()
    expected = np.argsort(-exact_V)[:4]
    assert [fill["token"] for fill in answer] == expected.tolist()
    assert [fill["score"] for fill in answer] == pytest.approx(exact_V[expected], abs=1e-6)
    assert set(answer[0]) == {"score", "token", "token_str", "sequence"}


def test_several_masks_are_a_list_each_and_each_fills_its_own() -> None:
    text = "[MASK] the [MASK]"
    answer = fills(TOKENIZER, text, TOKENIZER.encode(text), _logits(2), top_k=2)
    assert [len(mask) for mask in answer] == [2, 2]
    assert answer[1][0]["sequence"].startswith("[MASK] the")
    assert answer[0][0]["sequence"].endswith("the [MASK]")
