"""Masking on the device with a fixed number of positions."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fillmask_model.training.lease.device_masks import DeviceMasker

VOCAB, MASK, SPECIAL = 50, 4, (0, 1, 2, 3, 4)


def masker(seed: int = 0) -> DeviceMasker:
    return DeviceMasker(VOCAB, MASK, SPECIAL, torch.Generator().manual_seed(seed))


def rows(count: int = 300) -> Tensor:
    """Return rows of 20 tokens, of which the last has no token to predict."""
    ids = torch.randint(5, VOCAB, (count, 20), generator=torch.Generator().manual_seed(1))
    ids[:, 0], ids[:, -1], ids[::2, 15:] = 2, 3, 0
    ids[-1] = 1
    return ids


def test_positions_are_distinct_and_ordinary() -> None:
    ids = rows()
    masked = masker()(ids, 1_000)
    assert masked.positions.shape == masked.labels.shape == (1_000,)
    assert len(set(masked.positions.tolist())) == 1_000
    assert torch.equal(ids.flatten()[masked.positions], masked.labels)
    assert (masked.labels >= 5).all()
    others = torch.ones(ids.numel(), dtype=torch.bool)
    others[masked.positions] = False
    assert torch.equal(masked.input_ids.flatten()[others], ids.flatten()[others])


def test_tokens_become_masks_random_tokens_or_stay() -> None:
    # Shares of 20,000 positions are within five standard deviations.
    ids = rows(5_000)
    masked = masker()(ids, 20_000)
    now = masked.input_ids.flatten()[masked.positions]
    same = (now == masked.labels).float().mean()
    assert (now == MASK).float().mean() == pytest.approx(0.8, abs=0.015)
    # a random token is the same by chance once in 45
    assert same == pytest.approx(0.1 + 0.1 / 45, abs=0.011)
    drawn = now[(now != MASK) & (now != masked.labels)]
    assert set(drawn.tolist()) == set(range(5, VOCAB))


def test_every_ordinary_token_is_as_likely() -> None:
    # Each of 45 to 90 positions is selected in a third of 600 draws, within five deviations.
    ids = rows(5)
    ordinary = ~torch.isin(ids, torch.tensor(SPECIAL)).flatten()
    count, draw = int(ordinary.sum()) // 3, masker()
    chosen = torch.zeros(ids.numel())
    for _ in range(600):
        chosen[draw(ids, count).positions] += 1
    assert (chosen[~ordinary] == 0).all()
    expected = 600 * count / int(ordinary.sum())
    assert (chosen[ordinary] - expected).abs().max() < 5 * (600 * 2 / 9) ** 0.5


def test_a_seed_decides_the_masks() -> None:
    ids = rows()
    same, again, other = (masker(seed)(ids, 50) for seed in (0, 0, 1))
    assert torch.equal(same.input_ids, again.input_ids)
    assert not torch.equal(same.input_ids, other.input_ids)
