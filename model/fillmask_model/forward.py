"""Two reference implementations of the forward pass in elementary tensor operations.

Tests compare the encoder with these functions. `mlm_forward_tied` reuses the embedding table as the
output projection (Press & Wolf 2017, section 2). `mlm_forward` has a separate projection.

Shapes: N batch, T tokens, D d_model, V vocabulary, H heads, M masked positions of the whole batch.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

NORM_EPS = 1e-5
WEIGHTS_PER_BLOCK = 6  # w_q, w_k, w_v, w_o, w_mlp1, w_mlp2


def mlm_forward(
    input_ids: Tensor,
    mask_indicator: Tensor,
    w_emb: Tensor,
    pos_embed: Tensor,
    blocks_weights: Tensor,
    w_head: Tensor,
    num_heads: int,
) -> Tensor:
    """Compute the logits at the masked positions with a separate output projection.

    Args:
        input_ids: (N, T) integers in [0, V).
        mask_indicator: (N, T). A value above 0.5 marks a masked position.
        w_emb: (V, D) embedding table.
        pos_embed: (T, D) position embeddings.
        blocks_weights: (num_blocks, 6, D, D) weights w_q, w_k, w_v, w_o, w_mlp1 and w_mlp2. A layer
            computes `x @ w`.
        w_head: (D, V) output projection.
        num_heads: number of attention heads, a divisor of D.

    Returns:
        (M, V) logits, rows in row-major order of (sequence, position).

    Raises:
        ValueError: an argument is invalid. The message names the argument.
    """
    _check(input_ids, mask_indicator, w_emb, pos_embed, blocks_weights, num_heads)
    if w_head.shape != w_emb.shape[::-1]:
        raise ValueError(
            f"w_head must have the shape (D, V) = {tuple(w_emb.shape[::-1])} "
            f"(got {tuple(w_head.shape)})"
        )
    x_MD = _masked_hidden(input_ids, mask_indicator, w_emb, pos_embed, blocks_weights, num_heads)
    return x_MD @ w_head


def mlm_forward_tied(
    input_ids: Tensor,
    mask_indicator: Tensor,
    w_emb: Tensor,
    pos_embed: Tensor,
    blocks_weights: Tensor,
    num_heads: int,
) -> Tensor:
    """Compute the logits at the masked positions with the embedding table as output projection.

    The arguments except `w_head`, the result and the errors are those of `mlm_forward`.
    """
    _check(input_ids, mask_indicator, w_emb, pos_embed, blocks_weights, num_heads)
    x_MD = _masked_hidden(input_ids, mask_indicator, w_emb, pos_embed, blocks_weights, num_heads)
    return x_MD @ w_emb.T


def _masked_hidden(
    input_ids: Tensor,
    mask_indicator: Tensor,
    w_emb: Tensor,
    pos_embed: Tensor,
    blocks_weights: Tensor,
    num_heads: int,
) -> Tensor:
    x_NTD = w_emb[input_ids.long()] + pos_embed  # torch treats a uint8 index as a mask
    for w_q, w_k, w_v, w_o, w_mlp1, w_mlp2 in blocks_weights:
        x_NTD = x_NTD + _attention(_layer_norm(x_NTD), w_q, w_k, w_v, w_o, num_heads)
        x_NTD = x_NTD + _gelu(_layer_norm(x_NTD) @ w_mlp1) @ w_mlp2
    return x_NTD[mask_indicator > 0.5]


def _layer_norm(x: Tensor) -> Tensor:
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + NORM_EPS)


def _gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _attention(
    x_NTD: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, num_heads: int
) -> Tensor:
    N, T, D = x_NTD.shape
    head_width = D // num_heads

    def heads(weight: Tensor) -> Tensor:
        return (x_NTD @ weight).reshape(N, T, num_heads, head_width).transpose(1, 2)

    scores_NHTT = heads(w_q) @ heads(w_k).transpose(2, 3) / math.sqrt(head_width)
    # subtract the largest score, so that exp cannot overflow
    weights_NHTT = torch.exp(scores_NHTT - scores_NHTT.amax(dim=-1, keepdim=True))
    weights_NHTT = weights_NHTT / weights_NHTT.sum(dim=-1, keepdim=True)
    mixed_NTD = (weights_NHTT @ heads(w_v)).transpose(1, 2).reshape(N, T, D)
    return mixed_NTD @ w_o


def _check(
    input_ids: Tensor,
    mask_indicator: Tensor,
    w_emb: Tensor,
    pos_embed: Tensor,
    blocks_weights: Tensor,
    num_heads: int,
) -> None:
    if input_ids.ndim != 2 or input_ids.shape[1] == 0:  # (N, T)
        raise ValueError(
            f"input_ids must have the shape (N, T) with T >= 1 (got {tuple(input_ids.shape)})"
        )
    if input_ids.is_floating_point() or input_ids.is_complex() or input_ids.dtype == torch.bool:
        raise ValueError(f"input_ids must have an integer type (got {input_ids.dtype})")
    if mask_indicator.shape != input_ids.shape:
        raise ValueError(
            f"mask_indicator must have the shape of input_ids, {tuple(input_ids.shape)} "
            f"(got {tuple(mask_indicator.shape)})"
        )
    if w_emb.ndim != 2:  # (V, D)
        raise ValueError(f"w_emb must have the shape (V, D) (got {tuple(w_emb.shape)})")
    V, D = w_emb.shape
    if input_ids.numel():
        lowest, highest = int(input_ids.min()), int(input_ids.max())
        if lowest < 0 or highest >= V:
            raise ValueError(
                f"input_ids must be from 0 to {V - 1}, the index of the last row of w_emb "
                f"(got {lowest} to {highest})"
            )
    if pos_embed.shape != (input_ids.shape[1], D):
        raise ValueError(
            f"pos_embed must have the shape (T, D) = ({input_ids.shape[1]}, {D}) "
            f"(got {tuple(pos_embed.shape)})"
        )
    if blocks_weights.ndim != 4 or blocks_weights.shape[1:] != (
        WEIGHTS_PER_BLOCK,
        D,
        D,
    ):  # (num_blocks, 6, D, D)
        raise ValueError(
            f"blocks_weights must have the shape (num_blocks, {WEIGHTS_PER_BLOCK}, {D}, {D}) "
            f"(got {tuple(blocks_weights.shape)})"
        )
    if num_heads < 1 or D % num_heads:
        raise ValueError(f"num_heads must be a positive divisor of D = {D} (got {num_heads})")
