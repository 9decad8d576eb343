"""Padded inputs of the graphs."""

from __future__ import annotations

import numpy as np

from benchmarks.comparison.engines.graphs import padded_inputs
from fillmask.tokenization.encoded_text import EncodedText

TEXTS = [
    EncodedText(np.array([2, 9, 4, 3]), np.array([2]), ((0, 1),)),
    EncodedText(np.array([2, 4, 4, 7, 8, 3]), np.array([1, 2]), ((0, 1), (1, 2))),
]


def test_shorter_texts_are_padded_and_masks_are_marked() -> None:
    # Rows are as long as the longest text. The attention mask is 1 at a text's own tokens only.
    inputs = padded_inputs(TEXTS, indicator=True)
    assert inputs["input_ids"].tolist() == [[2, 9, 4, 3, 0, 0], [2, 4, 4, 7, 8, 3]]
    assert inputs["attention_mask"].tolist() == [[1, 1, 1, 1, 0, 0], [1] * 6]
    assert inputs["mask_indicator"].tolist() == [[0, 0, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0]]
    assert inputs["mask_indicator"].dtype == np.float32


def test_graphs_of_all_logits_are_not_told_the_masks() -> None:
    # A runtime rejects inputs that a graph does not have.
    assert list(padded_inputs(TEXTS, indicator=False)) == ["input_ids", "attention_mask"]
