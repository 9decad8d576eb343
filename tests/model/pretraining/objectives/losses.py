"""Inputs of losses, and the comparison of a loss with an exact loss."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


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
