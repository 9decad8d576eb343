"""What positions do to an encoder beside a table of their own: sinusoids, rotations, distances.

Shapes: T tokens, D d_model, d width of a head, H heads.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

RELATIVE_MAX_DISTANCE = 128  # farther tokens share a bucket (Raffel et al. 2020, section 2.1)


def fixed_positions(length: int, width: int) -> Tensor:
    """Sinusoids (length, width) of Vaswani et al. 2017, section 3.5."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    even = torch.arange(0, width, 2, dtype=torch.float64)
    angle = position * torch.exp(-math.log(10_000.0) * even / width)
    table = torch.zeros(length, width, dtype=torch.float64)
    table[:, 0::2] = torch.sin(angle)
    table[:, 1::2] = torch.cos(angle)[:, : width // 2]
    return table.float()


def rotations(length: int, head_width: int, base: float) -> tuple[Tensor, Tensor]:
    """Cosines and sines (T, d/2) of rotary position embeddings (Su et al. 2021, section 3.2).

    The angles are rounded to float32 twice, as where published encoders were trained: at thousands
    of positions a more exact table would be another one.
    """
    even = torch.arange(0, head_width, 2, dtype=torch.float32)
    frequency = 1.0 / (base ** (even / head_width))
    angle = torch.arange(length, dtype=torch.float32)[:, None] * frequency
    return angle.cos(), angle.sin()


def rotate(x_NHTd: Tensor, cosine_Td: Tensor, sine_Td: Tensor) -> Tensor:
    """Turn each pair (i, i + d/2) of a head's values by its angle."""
    first, second = x_NHTd.chunk(2, dim=-1)
    turned = (first * cosine_Td - second * sine_Td, second * cosine_Td + first * sine_Td)
    return torch.cat(turned, dim=-1).to(x_NHTd.dtype)


def distance_buckets(length: int, buckets: int) -> Tensor:
    """(2T - 1,) the bucket of each distance key - query from 1 - T to T - 1.

    Half of the buckets are for keys that follow. Of each half, one half are single distances, the
    rest grow with the logarithm up to RELATIVE_MAX_DISTANCE.
    """
    distance = torch.arange(1 - length, length)
    half = buckets // 2
    exact = half // 2
    size = distance.abs()
    # float32, as in published encoders: a distance on the edge of a bucket falls where theirs does
    growth = torch.log(size.clamp(min=1).float() / exact) / math.log(RELATIVE_MAX_DISTANCE / exact)
    far = exact + (growth * (half - exact)).long()
    bucket = torch.where(size < exact, size, far.clamp(max=half - 1))
    return bucket + torch.where(distance > 0, half, 0)
