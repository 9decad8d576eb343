"""One block of the encoder: attention and feed-forward part.

Shapes: N batch, T tokens, D d_model, H heads, d width of a head.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from model.encoder.config import EncoderConfig
from model.encoder.layers import attend, layer_norm
from model.encoder.positions import distance_buckets, rotate, rotations


@dataclass(frozen=True, slots=True)
class View:
    """What a layer's attention sees, and from where.

    Attributes:
        mask: broadcastable to (N, H, T, T): boolean, False for keys not seen, or float32 to be
            added to scores; None where all is seen alike.
        angles: cosines and sines (T, d/2) of the rotation by position; None for none.
    """

    mask: Tensor | None
    angles: tuple[Tensor, Tensor] | None


def views(
    config: EncoderConfig, device: torch.device, tokens: int, keep_NT: Tensor | None
) -> tuple[View, View]:
    """For layers that see all of the text, and for those that see a window of it.

    Args:
        config: the encoder's.
        device: where it computes.
        tokens: T.
        keep_NT: boolean, False for padding; None where there is none.
    """
    keep = None if keep_NT is None else keep_NT[:, None, None, :]

    def angles(base: float | None) -> tuple[Tensor, Tensor] | None:
        if base is None:
            return None
        cosine, sine = rotations(tokens, config.head_width, base)
        return cosine.to(device), sine.to(device)

    everything = View(keep, angles(config.rotary_base))
    if not config.local_layers:
        return everything, everything
    position = torch.arange(tokens, device=device)
    near_TT = (position[:, None] - position).abs() <= config.local_window
    window = near_TT if keep is None else near_TT & keep
    return everything, View(window, angles(config.local_rotary_base))


def bias_by_distance(config: EncoderConfig, bias_BH: Tensor, tokens: int, view: View) -> View:
    """The same view, with what an encoder adds to scores by the distance of two tokens.

    Args:
        config: the encoder's.
        bias_BH: (buckets, H).
        tokens: T.
        view: with a boolean mask or none.
    """
    device = bias_BH.device
    by_distance = bias_BH[distance_buckets(tokens, config.relative_buckets).to(device)]
    position = torch.arange(tokens, device=device)
    added_1HTT = by_distance[position - position[:, None] + tokens - 1].permute(2, 0, 1)[None]
    if view.mask is not None:
        added_1HTT = added_1HTT.masked_fill(~view.mask, float("-inf"))
    return View(added_1HTT, view.angles)


class Block(nn.Module):
    """Attention and feed-forward part, each with its residual and its norm.

    Args:
        config: the encoder's.
        number: which block this is.
    """

    def __init__(self, config: EncoderConfig, number: int) -> None:
        super().__init__()
        D = config.d_model
        linear = partial(nn.Linear, D, D, bias=config.attention_bias)
        self.query = linear()
        self.key = linear()
        self.value = linear()
        self.output = linear()
        bare = number == 0 and not config.first_attention_norm
        self.attention_norm = nn.Identity() if bare else layer_norm(config, D)
        self.ffn_in = nn.Linear(D, config.d_ff, bias=config.ffn_bias != "none")
        if config.gated_ffn:
            self.ffn_gate = nn.Linear(D, config.d_ff, bias=config.ffn_bias != "none")
        self.ffn_out = nn.Linear(config.d_ff, D, bias=config.ffn_bias == "both")
        self.ffn_norm = layer_norm(config, D)
        self.config = config

    def forward(self, x: Tensor, view: View, at_NT: Tensor | None = None) -> Tensor:
        """(N, T, D) to (N, T, D), or to (M, D) at the M positions where `at_NT` is True."""
        pre = self.config.norm_placement == "pre"
        mixed = self._mix(self.attention_norm(x) if pre else x, view)
        if at_NT is not None:
            x, mixed = x[at_NT], mixed[at_NT]
        x = x + self.output(mixed)
        if pre:
            return x + self._feed_forward(self.ffn_norm(x))
        x = self.attention_norm(x)
        normed: Tensor = self.ffn_norm(x + self._feed_forward(x))
        return normed

    def _mix(self, x_NTD: Tensor, view: View) -> Tensor:
        """Values (N, T, D) as attention mixes them, heads side by side."""
        N, T, D = x_NTD.shape
        q, k, v = (
            part(x_NTD).view(N, T, self.config.num_heads, self.config.head_width).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        if view.angles is not None:
            q, k = (rotate(part, *view.angles) for part in (q, k))
        mask = view.mask
        if mask is not None and mask.dtype != torch.bool:
            mask = mask.to(q.dtype)
        return attend(q, k, v, mask).transpose(1, 2).reshape(N, T, D)

    def _feed_forward(self, x: Tensor) -> Tensor:
        inner = gelu(self.ffn_in(x), self.config.activation)
        if self.config.gated_ffn:
            inner = inner * self.ffn_gate(x)
        output: Tensor = self.ffn_out(inner)
        return output


def gelu(x: Tensor, activation: str) -> Tensor:
    """GELU, by tanh or by erf (Hendrycks & Gimpel 2016)."""
    return F.gelu(x, approximate="tanh" if activation == "gelu_tanh" else "none")
