"""Losses with class weights, compared with values computed by hand."""

from __future__ import annotations

import math

import pytest
import torch

from fillmask_model.classification.loss import make_loss
from tests.model.classification.samples import SINGLE


def test_class_weights_change_the_cross_entropy() -> None:
    logits, targets = torch.tensor([[2.0, 0.0], [1.0, 3.0], [0.5, 0.0]]), torch.tensor([0, 0, 1])
    losses = [
        math.log(math.exp(2) + 1) - 2,
        math.log(math.e + math.exp(3)) - 1,
        math.log(math.exp(0.5) + 1),
    ]
    assert float(make_loss(SINGLE, None)(logits, targets)) == pytest.approx(sum(losses) / 3)
    weighted = float(make_loss(SINGLE, torch.tensor([0.5, 3.0]))(logits, targets))
    expected = (0.5 * losses[0] + 0.5 * losses[1] + 3 * losses[2]) / (0.5 + 0.5 + 3)
    assert weighted == pytest.approx(expected)


def test_class_weights_multiply_the_loss_of_rows_with_the_label() -> None:
    logits, targets = torch.tensor([[2.0, -1.0]]), torch.tensor([[1.0, 0.0]])
    present, absent = math.log(1 + math.exp(-2)), math.log(1 + math.exp(-1))
    plain = make_loss("multi_label_classification", None)
    assert float(plain(logits, targets)) == pytest.approx((present + absent) / 2)
    weighted = make_loss("multi_label_classification", torch.tensor([5.0, 7.0]))
    assert float(weighted(logits, targets)) == pytest.approx((5 * present + absent) / 2)


def test_squared_error_of_numbers() -> None:
    loss = make_loss("regression", None)
    assert float(loss(torch.tensor([[1.0], [4.0]]), torch.tensor([3.0, 4.0]))) == 2.0
