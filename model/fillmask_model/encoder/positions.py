"""Sinusoids, rotary angles and relative distances for encoders without learned positions.

Shapes: N batch, H heads, T tokens, d width of a head.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fillmask_model.encoder.config import EncoderConfig

RELATIVE_MAX_DISTANCE = 128  # larger distances share a bucket (Raffel et al. 2020, section 2.1)


def sinusoidal_positions(length: int, width: int) -> Tensor:
    """Compute the sinusoids (length, width) of Vaswani et al. 2017, section 3.5."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    even = torch.arange(0, width, 2, dtype=torch.float64)
    angle = position * torch.exp(-math.log(10_000.0) * even / width)
    table = torch.zeros(length, width, dtype=torch.float64)
    table[:, 0::2] = torch.sin(angle)
    table[:, 1::2] = torch.cos(angle)[:, : width // 2]
    return table.float()


def base_frequencies(head_width: int, base: float) -> Tensor:
    """Compute the frequencies (d/2,) of rotary embeddings (Su et al. 2021, section 3.2).

    Frequencies and angles have float32 precision, as in the training of published encoders. A more
    exact table differs from the tables of these encoders by 5e-4 radians at position 8,192.
    """
    even = torch.arange(0, head_width, 2, dtype=torch.float32)
    return 1.0 / (base ** (even / head_width))


def rotary_frequencies(config: EncoderConfig, *, local: bool) -> tuple[Tensor, float] | None:
    """Return the frequencies (d/2,) and the factor of a layer's rotary embeddings.

    Args:
        local: whether the layer has local attention.

    Returns:
        The frequencies and the factor, or None for an encoder without rotary embeddings.
    """
    base = config.local_rotary_base if local else config.rotary_base
    if base is None:
        return None
    if local:
        return base_frequencies(config.head_width, base), 1.0
    if config.rotary_frequencies:
        return torch.tensor(config.rotary_frequencies), config.rotary_gain
    return base_frequencies(config.head_width, base), config.rotary_gain


def rotary_angles(length: int, frequencies: Tensor, gain: float) -> tuple[Tensor, Tensor]:
    """Compute cosines and sines (T, d/2) of rotary embeddings, times a factor."""
    angle = torch.arange(length, dtype=torch.float32)[:, None] * frequencies
    return angle.cos() * gain, angle.sin() * gain


def apply_rotary(x_NHTd: Tensor, cosine_Td: Tensor, sine_Td: Tensor) -> Tensor:
    """Rotate each pair (i, i + d/2) of a head's values by its angle."""
    first, second = x_NHTd.chunk(2, dim=-1)
    rotated = (first * cosine_Td - second * sine_Td, second * cosine_Td + first * sine_Td)
    return torch.cat(rotated, dim=-1).to(x_NHTd.dtype)


def relative_position_buckets(length: int, buckets: int) -> Tensor:
    """Compute the bucket of each distance between a query and a key.

    Half of the buckets are for keys after the query. In each half, the first half of the buckets
    contains one distance per bucket. The ranges of the other buckets grow logarithmically up to
    RELATIVE_MAX_DISTANCE.

    Returns:
        (2T - 1,) buckets of the distances 1 - T to T - 1, key position minus query position.
    """
    distance = torch.arange(1 - length, length)
    half = buckets // 2
    exact = half // 2
    size = distance.abs()
    # float32 as in published encoders, so that distances at a bucket's edge have the same bucket
    growth = torch.log(size.clamp(min=1).float() / exact) / math.log(RELATIVE_MAX_DISTANCE / exact)
    far = exact + (growth * (half - exact)).long()
    bucket = torch.where(size < exact, size, far.clamp(max=half - 1))
    return bucket + torch.where(distance > 0, half, 0)
