"""Transformer block of attention and a feed-forward network.

Shapes: N batch, T tokens, D d_model, H heads, d width of a head.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.layers import activate, attend, norm
from fillmask_model.encoder.positions import (
    apply_rotary,
    relative_position_buckets,
    rotary_angles,
    rotary_frequencies,
)


@dataclass(frozen=True, slots=True)
class AttentionContext:
    """Attention mask and rotary angles of a layer.

    Attributes:
        mask: tensor that broadcasts to (N, H, T, T), or None for unmasked attention. A boolean mask
            is False for ignored keys. Attention adds a float32 mask to the scores.
        angles: cosines and sines (T, d/2). None without rotary position embeddings.
    """

    mask: Tensor | None
    angles: tuple[Tensor, Tensor] | None


def attention_contexts(
    config: EncoderConfig, device: torch.device, tokens: int, keep_NT: Tensor | None
) -> tuple[AttentionContext, AttentionContext]:
    """Build the contexts of layers with full attention and with local (windowed) attention.

    Args:
        device: device of the encoder's weights.
        tokens: number T of tokens per row.
        keep_NT: boolean mask, False for padding. None without padding.
    """
    keep = None if keep_NT is None else keep_NT[:, None, None, :]

    def angles(*, local: bool) -> tuple[Tensor, Tensor] | None:
        frequencies = rotary_frequencies(config, local=local)
        if frequencies is None:
            return None
        cosine, sine = rotary_angles(tokens, *frequencies)
        return cosine.to(device), sine.to(device)

    full = AttentionContext(keep, angles(local=False))
    if not config.local_layers:
        return full, full
    position = torch.arange(tokens, device=device)
    near_TT = (position[:, None] - position).abs() <= config.local_window
    window = near_TT if keep is None else near_TT & keep
    return full, AttentionContext(window, angles(local=True))


def add_relative_bias(
    config: EncoderConfig, bias_BH: Tensor, tokens: int, context: AttentionContext
) -> AttentionContext:
    """Return the context with the relative position bias added to its mask.

    Args:
        bias_BH: (buckets, H) bias of each distance bucket.
        tokens: number T of tokens per row.
        context: context with a boolean mask or without a mask.
    """
    device = bias_BH.device
    bias_by_distance = bias_BH[
        relative_position_buckets(tokens, config.relative_buckets).to(device)
    ]
    position = torch.arange(tokens, device=device)
    added_1HTT = bias_by_distance[position - position[:, None] + tokens - 1].permute(2, 0, 1)[None]
    if context.mask is not None:
        added_1HTT = added_1HTT.masked_fill(~context.mask, float("-inf"))
    return AttentionContext(added_1HTT, context.angles)


def select_positions(x_NTD: Tensor, selected: Tensor) -> Tensor:
    """Return the values (M, D) at the selected positions.

    Args:
        selected: (N, T) bool, True at the M positions, or (M,) int64 indices into the N * T
            positions in row-major order. Indices give the result a shape that does not depend on
            values, so that a GPU need not wait for the CPU.
    """
    if selected.dtype == torch.bool:
        return x_NTD[selected]
    return x_NTD.flatten(0, 1).index_select(0, selected)


class Block(nn.Module):
    """Transformer block with residual connections and layer norms.

    Args:
        number: index of the block, from 0.
    """

    def __init__(self, config: EncoderConfig, number: int) -> None:
        super().__init__()
        D = config.d_model
        linear = partial(nn.Linear, D, D, bias=config.attention_bias)
        self.query = linear()
        self.key = linear()
        self.value = linear()
        self.output = linear()
        if config.query_key_norm:
            self.query_norm = norm(config, D, shift=False)
            self.key_norm = norm(config, D, shift=False)
        unnormed = number == 0 and not config.first_attention_norm
        self.attention_norm = nn.Identity() if unnormed else norm(config, D)
        self.ffn_in = nn.Linear(D, config.d_ff, bias=config.ffn_in_bias)
        if config.gated_ffn:
            self.ffn_gate = nn.Linear(D, config.d_ff, bias=config.ffn_in_bias)
        self.ffn_out = nn.Linear(config.d_ff, D, bias=config.ffn_out_bias)
        self.ffn_norm = norm(config, D)
        self.config = config

    def forward(
        self, x: Tensor, context: AttentionContext, selected: Tensor | None = None
    ) -> Tensor:
        """Map hidden states (N, T, D) to (N, T, D).

        If `selected` has the form of `select_positions` for M positions, the result is (M, D).
        """
        pre = self.config.norm_placement == "pre"
        mixed = self._attend(self.attention_norm(x) if pre else x, context)
        if selected is not None:
            x, mixed = select_positions(x, selected), select_positions(mixed, selected)
        x = x + self.output(mixed)
        if pre:
            return x + self._feed_forward(self.ffn_norm(x))
        x = self.attention_norm(x)
        normed: Tensor = self.ffn_norm(x + self._feed_forward(x))
        return normed

    def _attend(self, x_NTD: Tensor, context: AttentionContext) -> Tensor:
        """Return the attention output (N, T, D) with concatenated heads."""
        N, T, D = x_NTD.shape
        q, k, v = (part(x_NTD) for part in (self.query, self.key, self.value))
        if self.config.query_key_norm:
            q, k = self.query_norm(q), self.key_norm(k)
        q, k, v = (
            part.view(N, T, self.config.num_heads, self.config.head_width).transpose(1, 2)
            for part in (q, k, v)
        )
        if context.angles is not None:
            q, k = (apply_rotary(part, *context.angles) for part in (q, k))
        mask = context.mask
        if mask is not None and mask.dtype != torch.bool:
            mask = mask.to(q.dtype)
        return attend(q, k, v, mask).transpose(1, 2).reshape(N, T, D)

    def _feed_forward(self, x: Tensor) -> Tensor:
        inner = activate(self.ffn_in(x), self.config.activation)
        if self.config.gated_ffn:
            inner = inner * self.ffn_gate(x)
        output: Tensor = self.ffn_out(inner)
        return output
