"""Rates, unchanged tokens and seeds of BERT's masking.

The tests check rates on about 54,500 ordinary tokens. A count of n draws with probability p has the
standard deviation sqrt(n p (1 - p)). A deviation above five standard deviations has a probability
of about one in a million. The fixed seed makes the outcome repeatable.
"""

from __future__ import annotations

import math
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


@pytest.fixture(scope="module")
def masked(original: Tensor) -> MaskedBatch:
    return corrupt(original)


def ordinary(input_ids: Tensor) -> Tensor:
    return torch.tensor([[int(i) not in SPECIAL for i in row] for row in input_ids])


@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_the_selected_share(original: Tensor, rate: float) -> None:
    # The default share is 15 %.
    result = corrupt(original) if rate == 0.15 else corrupt(original, select_rate=rate)
    assert_binomial(int(result.selected.sum()), int(ordinary(original).sum()), rate)


def test_of_the_selected_80_10_10(original: Tensor, masked: MaskedBatch) -> None:
    # 80 % of the selected tokens become the mask, 10 % a random token, and 10 % stay.
    # The random token may equal the true token.
    before, after = original[masked.selected], masked.input_ids[masked.selected]
    hit = 1 / (VOCAB_SIZE - len(SPECIAL))
    draws = len(before)
    assert_binomial(int((after == MASK).sum()), draws, 0.8)
    assert_binomial(int((after == before).sum()), draws, 0.1 + 0.1 * hit)
    assert_binomial(int(((after != MASK) & (after != before)).sum()), draws, 0.1 * (1 - hit))


def test_special_tokens_are_never_selected(original: Tensor, masked: MaskedBatch) -> None:
    special = ~ordinary(original)
    assert special.sum() > 4000
    assert not (masked.selected & special).any()
    assert torch.equal(masked.input_ids[special], original[special])


def test_special_tokens_are_never_drawn(original: Tensor, masked: MaskedBatch) -> None:
    drawn = masked.input_ids[masked.selected & (masked.input_ids != original)]
    assert set(drawn.tolist()) - {MASK} == set(range(VOCAB_SIZE)) - set(SPECIAL)


def test_other_positions_are_unchanged(original: Tensor, masked: MaskedBatch) -> None:
    # The caller's batch does not change.
    untouched = ~masked.selected
    assert torch.equal(masked.input_ids[untouched], original[untouched])
    assert MASK in masked.input_ids[masked.selected]
    copy = original.clone()
    corrupt(original, seed=5)
    assert torch.equal(original, copy)


def test_labels_are_the_originals_in_row_major_order(original: Tensor) -> None:
    # Label m is the true token of the m-th selected position, row by row.
    batch = original[:7]
    result = corrupt(batch)
    labels = [
        int(batch[n, t])
        for n in range(batch.shape[0])
        for t in range(batch.shape[1])
        if result.selected[n, t]
    ]
    assert len(labels) > 50
    assert result.labels.tolist() == labels


def test_the_seed_decides_the_masks(original: Tensor, masked: MaskedBatch) -> None:
    # The global state of torch has no influence.
    torch.manual_seed(1)
    again = corrupt(original)
    assert torch.equal(again.input_ids, masked.input_ids)
    assert torch.equal(again.selected, masked.selected)
    assert torch.equal(again.labels, masked.labels)
    assert not torch.equal(corrupt(original, seed=1).selected, masked.selected)


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, float("nan")])
def test_a_rate_that_is_no_share_is_refused(rate: float) -> None:
    # The rate must be above 0 and below 1.
    with pytest.raises(ValueError, match="select_rate"):
        Masker(VOCAB_SIZE, MASK, SPECIAL, rate)


def test_the_mask_must_be_special() -> None:
    # The masker selects and draws only tokens that are not special.
    with pytest.raises(ValueError, match="special_token_ids must contain mask_token_id"):
        Masker(VOCAB_SIZE, MASK, (0, 1))
