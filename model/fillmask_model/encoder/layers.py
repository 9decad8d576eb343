"""Norms, activations and scaled dot-product attention (Vaswani et al. 2017, section 3.2.1).

Shapes: N batch, H heads, T tokens, d width of a head.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fillmask_model.encoder.config import EncoderConfig

SHORT_ROW_TOKENS = 512  # plain products store T x T scores, so longer rows use the fused kernel


def norm(config: EncoderConfig, width: int, *, shift: bool = True) -> nn.LayerNorm | nn.RMSNorm:
    """Create a norm over the last axis with the configured kind, scale and shift.

    Args:
        shift: whether the norm may have a shift.
    """
    affine = config.norm_affine
    if config.norm_kind == "rms":
        return nn.RMSNorm(width, config.norm_eps, elementwise_affine=affine)
    shift = shift and config.norm_bias
    return nn.LayerNorm(width, config.norm_eps, elementwise_affine=affine, bias=shift)


def activate(x: Tensor, activation: str) -> Tensor:
    match activation:
        case "tanh":
            return torch.tanh(x)
        case "relu":
            return F.relu(x)
        case "silu":
            return F.silu(x)
    return F.gelu(x, approximate="tanh" if activation == "gelu_tanh" else "none")


def attend(q_NHTd: Tensor, k_NHTd: Tensor, v_NHTd: Tensor, mask: Tensor | None) -> Tensor:
    """Compute scaled dot-product attention (N, H, T, d).

    Args:
        mask: `attn_mask` of `torch.nn.functional.scaled_dot_product_attention`.
    """
    plain = mask is None or mask.dtype == torch.bool
    short = plain and q_NHTd.shape[2] <= SHORT_ROW_TOKENS
    if short and q_NHTd.requires_grad and _in_bfloat16_on_cpu(q_NHTd):
        # With gradients, the fused kernel takes up to 3 times as long as these plain products
        # (docs/decisions/021). A training step on 16 padded texts of 32 to 128 tokens takes 1.4 to
        # 1.5 times as long with the fused kernel.
        q, k, v = (part.flatten(0, 1) for part in (q_NHTd, k_NHTd, v_NHTd))
        scores = torch.bmm(q / math.sqrt(q.shape[-1]), k.transpose(1, 2))
        if mask is not None:
            scores_NHTT = scores.view(*q_NHTd.shape[:3], -1)
            scores = scores_NHTT.masked_fill(~mask, float("-inf")).flatten(0, 1)
        return torch.bmm(scores.softmax(-1), v).view(q_NHTd.shape)
    return F.scaled_dot_product_attention(q_NHTd, k_NHTd, v_NHTd, attn_mask=mask)


def _in_bfloat16_on_cpu(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype == torch.bfloat16
