"""Fused loss, compared with PyTorch's cross-entropy."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from fillmask_model.pretraining.cross_entropy import summed_cross_entropy


def inputs(positions: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return random hidden states, table, bias and labels for a vocabulary of 31 tokens."""
    generator = torch.Generator().manual_seed(1)
    shapes = ((positions, 12), (31, 12), (31,))
    hidden, table, bias = (
        torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes
    )
    return hidden, table, bias, torch.randint(31, (positions,), generator=generator)


def assert_same_loss_and_gradients(loss: Tensor, exact: Tensor, given: Sequence[Tensor]) -> None:
    """Check that losses in float64 and their scaled gradients differ by at most 1e-12."""
    torch.testing.assert_close(loss, exact, rtol=0, atol=1e-12)
    expected = torch.autograd.grad(exact / 7, given)
    for gradient, wanted in zip(torch.autograd.grad(loss / 7, given), expected, strict=True):
        torch.testing.assert_close(gradient, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("positions", [0, 1, 9])
def test_loss_and_gradients_are_those_of_pytorch(*, positions: int, has_bias: bool) -> None:
    # The tolerance is 1e-12 in float64. A token may be the label of two positions or of none.
    hidden, table, bias, labels = inputs(positions, torch.float64)
    given = [hidden, table, *([bias] if has_bias else [])]
    logits = F.linear(hidden, table, bias if has_bias else None)
    plain = F.cross_entropy(logits, labels, reduction="sum")
    fused = summed_cross_entropy(hidden, table, bias if has_bias else None, labels)
    assert_same_loss_and_gradients(fused, plain, given)


def test_gradients_are_those_of_differences() -> None:
    hidden, table, bias, labels = inputs(4, torch.float64)
    assert torch.autograd.gradcheck(
        lambda h, t, b: summed_cross_entropy(h, t, b, labels), (hidden, table, bias)
    )


def test_a_table_used_twice_gets_both_gradients() -> None:
    _, table, _, labels = inputs(9, torch.float64)

    def gradient(*, fused: bool) -> Tensor:
        hidden = table[labels.flip(0)] * 2
        if fused:
            loss = summed_cross_entropy(hidden, table, None, labels)
        else:
            loss = F.cross_entropy(hidden @ table.T, labels, reduction="sum")
        return torch.autograd.grad(loss, table)[0]

    torch.testing.assert_close(gradient(fused=True), gradient(fused=False), rtol=0, atol=1e-12)


def test_under_autocast_products_are_bfloat16_and_the_rest_float32() -> None:
    # Loss and gradients are near the results in float32.
    given = inputs(9, torch.float32)
    *differentiable, _ = given
    exact = summed_cross_entropy(*given)
    with torch.autocast("cpu", torch.bfloat16):
        rough = summed_cross_entropy(*given)
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough, exact, rtol=0.02, atol=0)
    expected = torch.autograd.grad(exact, differentiable)
    for gradient, wanted in zip(torch.autograd.grad(rough, differentiable), expected, strict=True):
        assert gradient.dtype == torch.float32
        torch.testing.assert_close(gradient, wanted, rtol=0, atol=0.05 * float(wanted.abs().max()))
