"""Layer norms as an encoder's configuration wants them."""

from __future__ import annotations

from torch import nn

from model.config import EncoderConfig


def layer_norm(config: EncoderConfig, width: int) -> nn.LayerNorm:
    """Over the last axis; scale and shift where the configuration has them."""
    return nn.LayerNorm(
        width, config.norm_eps, elementwise_affine=config.norm_affine, bias=config.norm_bias
    )
