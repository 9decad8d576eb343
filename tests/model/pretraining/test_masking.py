"""Rates, unchanged tokens and seeds of BERT's masking.

The tests check rates on about 54,500 ordinary tokens. A count of n draws with probability p has the
standard deviation sqrt(n p (1 - p)). A deviation above five standard deviations has a probability
of about one in a million. The fixed seed makes the outcome repeatable.
"""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

import pytest
import torch
from torch import Tensor

from fillmask_model.pretraining.masking import MaskedBatch, Masker
from tests.model.samples import random_ids

VOCAB_SIZE = 60
MASK = 9
SPECIAL = (0, 1, 4, MASK, 59)  # ids that are neither adjacent nor only at the start
PAD = 0


def corrupt(input_ids: Tensor, seed: int = 0, **changes: Any) -> MaskedBatch:
    """Mask a batch with changed settings of the default masker."""
    masker = Masker(VOCAB_SIZE, MASK, SPECIAL, **changes)
    return masker(input_ids, torch.Generator().manual_seed(seed))


def assert_binomial(successes: int, draws: int, chance: float) -> None:
    """Check that a count is within five standard deviations of its expectation."""
    bound = 5 * math.sqrt(draws * chance * (1 - chance))
    assert abs(successes - draws * chance) < bound, (successes, draws, chance)


@pytest.fixture(scope="module")
def original() -> Tensor:
    """Token ids (500, 128), including special tokens and padding."""
    input_ids = random_ids((500, 128), VOCAB_SIZE)
    input_ids[:, 0], input_ids[:, -8:] = 1, PAD
    return input_ids


def is_ordinary(input_ids: Tensor) -> Tensor:
    return torch.tensor([[int(i) not in SPECIAL for i in row] for row in input_ids])


@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_of_the_selected_80_10_10(original: Tensor, rate: float) -> None:
    # The default selects 15 %. 80 % of the selected tokens become the mask, 10 % a random token,
    # which may equal the true one, and 10 % stay.
    masked = corrupt(original) if rate == 0.15 else corrupt(original, select_rate=rate)
    assert_binomial(int(masked.selected.sum()), int(is_ordinary(original).sum()), rate)
    before, after = original[masked.selected], masked.input_ids[masked.selected]
    hit = 1 / (VOCAB_SIZE - len(SPECIAL))
    assert_binomial(int((after == MASK).sum()), len(before), 0.8)
    assert_binomial(int((after == before).sum()), len(before), 0.1 + 0.1 * hit)
    others = after[(after != MASK) & (after != before)]
    assert_binomial(len(others), len(before), 0.1 * (1 - hit))
    assert set(others.tolist()) == set(range(VOCAB_SIZE)) - set(SPECIAL)


def test_special_tokens_and_other_positions_are_unchanged(original: Tensor) -> None:
    # The caller's batch does not change either.
    copy = original.clone()
    masked = corrupt(original)
    special = ~is_ordinary(original)
    assert special.sum() > 4000
    assert not (masked.selected & special).any()
    untouched = ~masked.selected
    assert torch.equal(masked.input_ids[untouched], original[untouched])
    assert torch.equal(original, copy)


def test_labels_are_the_originals_in_row_major_order(original: Tensor) -> None:
    # Label m is the true token of the m-th selected position, row by row, also of some rows.
    batch = original[:7]
    result = corrupt(batch)
    labels = [
        [int(token) for token, selected in zip(*row, strict=True) if selected]
        for row in zip(batch, result.selected, strict=True)
    ]
    assert result.labels.tolist() == list(chain(*labels))
    part = result.rows(slice(2, 5))
    assert part.labels.tolist() == list(chain(*labels[2:5]))
    assert torch.equal(part.input_ids, result.input_ids[2:5])


def test_the_seed_decides_the_masks(original: Tensor) -> None:
    # The global state of torch has no influence.
    first = corrupt(original)
    torch.manual_seed(1)
    again = corrupt(original)
    assert torch.equal(again.input_ids, first.input_ids)
    assert torch.equal(again.selected, first.selected)
    assert not torch.equal(corrupt(original, seed=1).selected, first.selected)
