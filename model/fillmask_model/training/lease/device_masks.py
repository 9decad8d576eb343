"""Masking on the device with a fixed number of positions, so that no shape depends on chance.

The shares are those of `fillmask_model.data.masking`. That masker selects each token with a
probability, so the number of positions varies, and a GPU would have to wait until the CPU knows it.

Shapes: N batch, T tokens, K selected positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor

from fillmask_model.data.masking import MASK_SHARE, RANDOM_SHARE


@dataclass(frozen=True, slots=True, eq=False)
class FixedMasks:
    """Masked input with the positions to predict.

    Attributes:
        input_ids: (N, T) int64 tokens after masking.
        positions: (K,) int64 indices of the positions in row-major order, in any order.
        labels: (K,) int64 original tokens at the positions.
    """

    input_ids: Tensor
    positions: Tensor
    labels: Tensor


class DeviceMasker:
    """Masking of a fixed number of random tokens as in BERT, without a wait for the device.

    Args:
        vocab_size: exclusive upper bound of the random tokens' ids.
        mask: id of the mask token.
        special: special ids, padding included, which the masker never selects or draws.
        generator: only source of randomness, on the device.
    """

    def __init__(
        self, vocab_size: int, mask: int, special: Collection[int], generator: torch.Generator
    ) -> None:
        ordinary_V = torch.ones(vocab_size, dtype=torch.bool)
        ordinary_V[torch.tensor(sorted(special))] = False
        self._mask, self._generator = mask, generator
        self._ordinary_V = ordinary_V.to(generator.device)
        self._drawable = ordinary_V.nonzero().squeeze(1).to(generator.device)

    def __call__(self, input_ids: Tensor, count: int) -> FixedMasks:
        """Mask a batch.

        Args:
            input_ids: (N, T) int64 tokens, of which at least `count` are ordinary.
            count: number K of positions to select among all ordinary tokens of the batch.
        """
        flat = input_ids.flatten()
        generator, device = self._generator, flat.device
        keys = torch.rand(flat.shape, generator=generator, device=device)
        # special tokens come last
        keys = keys.masked_fill(~self._ordinary_V[flat], -1.0)
        positions = keys.topk(count, sorted=False).indices
        labels = flat[positions]
        fate = torch.rand(count, generator=generator, device=device)
        candidates = len(self._drawable)
        picks = torch.randint(candidates, (count,), generator=generator, device=device)
        other = torch.where(fate < MASK_SHARE + RANDOM_SHARE, self._drawable[picks], labels)
        masked = other.masked_fill(fate < MASK_SHARE, self._mask)
        return FixedMasks(flat.scatter(0, positions, masked).view_as(input_ids), positions, labels)
