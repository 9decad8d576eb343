"""The two reference forward passes, compared with the float64 oracle.

Tolerance: 1e-5 absolute on float32 inputs, with logits of order 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from fillmask_model.forward import mlm_forward, mlm_forward_tied
from tests.model import oracle
from tests.model.samples import random_ids

TOLERANCE = 1e-5


class Packed(NamedTuple):
    """Arguments of `mlm_forward_tied`, in order."""

    input_ids: Tensor
    mask_indicator: Tensor
    w_emb: Tensor
    pos_embed: Tensor
    blocks_weights: Tensor
    num_heads: int


def packed(
    *, N: int = 3, T: int = 7, D: int = 12, V: int = 31, blocks: int = 2, heads: int = 3
) -> Packed:
    """Return random arguments with uneven attention and logits of order 1."""
    generator = torch.Generator().manual_seed(N + 10 * T + 100 * blocks)
    return Packed(
        input_ids=random_ids((N, T), V),
        mask_indicator=(torch.rand(N, T, generator=generator) < 0.4).float(),
        w_emb=torch.randn(V, D, generator=generator) * 0.5,
        pos_embed=torch.randn(T, D, generator=generator) * 0.5,
        blocks_weights=torch.randn(blocks, 6, D, D, generator=generator) * 0.6 * D**-0.5,
        num_heads=heads,
    )


def expected(case: Packed, w_head: Tensor | None = None) -> NDArray[np.float64]:
    w_emb, pos_embed, blocks_weights = (t.double().numpy() for t in case[2:5])
    return oracle.packed_logits(
        case.input_ids.numpy(),
        case.mask_indicator.double().numpy(),
        oracle.PackedWeights(w_emb, pos_embed, blocks_weights),
        case.num_heads,
        w_emb.T if w_head is None else w_head.double().numpy(),
    )


def untied_head(case: Packed) -> Tensor:
    """Return an output projection that is independent of the embedding table."""
    V, D = case.w_emb.shape
    return torch.randn(D, V, generator=torch.Generator().manual_seed(99)) * 0.5


CASES = {
    "one head": packed(heads=1),
    "several heads": packed(D=24, heads=4),
    "as many heads as columns": packed(D=6, heads=6),
    "one sequence": packed(N=1),
    "one token": packed(N=4, T=1)._replace(mask_indicator=torch.ones(4, 1)),
    "one token in all": packed(N=1, T=1)._replace(mask_indicator=torch.ones(1, 1)),
    "no block": packed(blocks=0),
    "many blocks": packed(blocks=12),
    "every position masked": packed()._replace(mask_indicator=torch.ones(3, 7)),
    "sequences without a mask": packed()._replace(
        mask_indicator=torch.tensor([[0.0] * 7, [0, 1, 0, 1, 1, 0, 0], [0.0] * 7])
    ),
    "nothing masked": packed()._replace(mask_indicator=torch.zeros(3, 7)),
    "no sequence": packed()._replace(
        input_ids=torch.empty(0, 7, dtype=torch.long), mask_indicator=torch.empty(0, 7)
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_both_agree_with_the_oracle(case: Packed) -> None:
    # Logits through the embedding table and through an untied projection agree to 1e-5.
    w_head = untied_head(case)
    for logits_MV, wanted in (
        (mlm_forward_tied(*case), expected(case)),
        (mlm_forward(*case[:5], w_head, case.num_heads), expected(case, w_head)),
    ):
        assert logits_MV.shape == (int((case.mask_indicator > 0.5).sum()), len(case.w_emb))
        np.testing.assert_allclose(logits_MV.numpy(), wanted, rtol=0, atol=TOLERANCE)


def test_a_position_is_masked_above_one_half() -> None:
    # Masks may be booleans and integers. The value 0.5 is not masked.
    case = packed(N=1, T=4)
    indicator = torch.tensor([[0.5, 0.51, -3.0, 2.0]])
    logits_MV = mlm_forward_tied(*case._replace(mask_indicator=indicator))
    assert logits_MV.shape[0] == 2
    for dtype in (torch.bool, torch.int64):
        same = torch.tensor([[0, 1, 0, 1]]).to(dtype)
        assert torch.equal(mlm_forward_tied(*case._replace(mask_indicator=same)), logits_MV)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_every_integer_type_of_ids_counts_the_same(dtype: torch.dtype) -> None:
    case = packed()
    narrow = case._replace(input_ids=case.input_ids.to(dtype))
    assert torch.equal(mlm_forward_tied(*narrow), mlm_forward_tied(*case))


def test_huge_scores_stay_finite() -> None:
    # Scores whose exponential overflows float32 give the oracle's result, not NaN.
    case = packed(D=8, heads=2, blocks=1)
    weights = case.blocks_weights.clone()
    weights[0, 0] *= 300
    weights[0, 1] *= 300
    huge = case._replace(blocks_weights=weights, mask_indicator=torch.ones(3, 7))
    logits_MV = mlm_forward_tied(*huge)
    assert torch.isfinite(logits_MV).all()
    np.testing.assert_allclose(logits_MV.numpy(), expected(huge), rtol=0, atol=TOLERANCE)


def test_inputs_are_left_alone() -> None:
    case = packed()
    copies = [tensor.clone() for tensor in case[:5]]
    mlm_forward_tied(*case)
    assert all(torch.equal(tensor, copy) for tensor, copy in zip(case[:5], copies, strict=True))


BAD: dict[str, tuple[str, Callable[[Packed], Any]]] = {
    "ids of one axis": ("input_ids", lambda c: c.input_ids[0]),
    "no token": ("input_ids", lambda c: c.input_ids[:, :0]),
    "fractional ids": ("input_ids", lambda c: c.input_ids.float()),
    "complex ids": ("input_ids", lambda c: c.input_ids.to(torch.complex64)),
    "boolean ids": ("input_ids", lambda c: c.input_ids > 3),
    "an id just below 0": ("input_ids", lambda c: c.input_ids.clamp(max=0) - 1),
    "an id just beyond the table": ("input_ids", lambda c: c.input_ids.clamp(max=0) + 31),
    "an indicator of other length": ("mask_indicator", lambda c: c.mask_indicator[:, 1:]),
    "a table of one axis": ("w_emb", lambda c: c.w_emb[0]),
    "too many positions": ("pos_embed", lambda c: torch.cat([c.pos_embed] * 2)),
    "one position for all": ("pos_embed", lambda c: c.pos_embed[:1]),
    "five matrices a block": ("blocks_weights", lambda c: c.blocks_weights[:, :5]),
    "narrow blocks": ("blocks_weights", lambda c: c.blocks_weights[..., :-1]),
    "narrow positions": ("pos_embed", lambda c: c.pos_embed[:, 1:]),
    "negative heads": ("num_heads", lambda _: -3),
    "no head": ("num_heads", lambda _: 0),
    "heads that do not divide D": ("num_heads", lambda _: 5),
}


@pytest.mark.parametrize(("argument", "broken"), BAD.values(), ids=BAD)
def test_a_bad_argument_is_named(argument: str, broken: Callable[[Packed], Any]) -> None:
    # Both functions raise a ValueError that begins with the argument's name.
    case = packed()
    bad = case._replace(**{argument: broken(case)})
    with pytest.raises(ValueError, match=rf"^{argument} "):
        mlm_forward_tied(*bad)
    with pytest.raises(ValueError, match=rf"^{argument} "):
        mlm_forward(*bad[:5], untied_head(case), bad.num_heads)


@pytest.mark.parametrize("shape", [(31, 12), (12, 30), (12,)])
def test_a_bad_head_is_named(shape: tuple[int, ...]) -> None:
    # An output projection must have the shape (D, V).
    case = packed()
    with pytest.raises(ValueError, match=r"^w_head "):
        mlm_forward(*case[:5], torch.zeros(shape), case.num_heads)
