"""Attention, compared with softmax(q k^T / sqrt(d)) v in float64, including gradients.

The absolute and relative tolerance is 1e-5 for float32. It is 0.02 for bfloat16, which has 8
significant bits.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from fillmask_model.encoder.layers import attend


def parts(tokens: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Return queries, keys and values (2, 3, tokens, 8) that are not contiguous."""
    generator = torch.Generator().manual_seed(tokens)
    drawn = [torch.randn(2, tokens, 3, 8, generator=generator).to(dtype) for _ in range(3)]
    return tuple(part.transpose(1, 2).detach().requires_grad_() for part in drawn)


def by_definition(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(-1) @ v


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("tokens", [1, 7, 64, 600])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.02)], ids=str
)
def test_outputs_and_gradients_are_those_of_the_definition(
    dtype: torch.dtype,
    tolerance: float,
    tokens: int,
    masked: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    # Rows are short or long, with and without a mask, with and without gradients.
    mask = torch.ones(tokens, tokens, dtype=torch.bool).tril() if masked else None
    q, k, v = parts(tokens, dtype)
    exact_q, exact_k, exact_v = (part.detach().double().requires_grad_() for part in (q, k, v))
    output, expected = attend(q, k, v, mask), by_definition(exact_q, exact_k, exact_v, mask)
    upstream = torch.randn(output.shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    gradients = torch.autograd.grad(output, (q, k, v), upstream)
    true_gradients = torch.autograd.grad(expected, (exact_q, exact_k, exact_v), upstream.double())
    with torch.no_grad():
        without_gradients = attend(q, k, v, mask)
    for got, true in (
        (output, expected),
        (without_gradients, expected),
        *zip(gradients, true_gradients, strict=True),
    ):
        assert got.dtype == dtype
        torch.testing.assert_close(got.double(), true, rtol=tolerance, atol=tolerance)
