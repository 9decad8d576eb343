"""Masking of training batches as in BERT (Devlin et al. 2019, section 3.1, task 1)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

SELECT_RATE = 0.15
MASK_SHARE = 0.8
RANDOM_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class MaskedBatch:
    """Masked input of the encoder with the tokens to predict.

    Attributes:
        input_ids: (N, T) tokens after masking.
        selected: (N, T) bool, True at positions to predict.
        labels: (M,) original tokens at the selected positions in row-major order.
    """

    input_ids: Tensor
    selected: Tensor
    labels: Tensor

    def rows(self, part: slice) -> MaskedBatch:
        first, last = (int(self.selected[:row].sum()) for row in (part.start, part.stop))
        return MaskedBatch(self.input_ids[part], self.selected[part], self.labels[first:last])


@dataclass(frozen=True, slots=True)
class Masker:
    """Masking of random tokens as in BERT.

    Of the selected tokens, 80 % become the mask token, 10 % become random tokens, and 10 % stay
    unchanged.

    Attributes:
        vocab_size: exclusive upper bound of the random tokens' ids.
        special_token_ids: ids of mask, padding and other special tokens, which the masker never
            selects or draws.
        select_rate: share in (0, 1) of ordinary tokens to select.
    """

    vocab_size: int
    mask_token_id: int
    special_token_ids: tuple[int, ...]
    select_rate: float = SELECT_RATE

    def __call__(self, input_ids: Tensor, generator: torch.Generator) -> MaskedBatch:
        """Mask a batch.

        Args:
            input_ids: (N, T) integer tokens.
            generator: only source of randomness. It must be on the CPU, so that a seed gives the
                same masks on every device.
        """
        shape = input_ids.shape
        special = torch.tensor(self.special_token_ids)
        device_ids, input_ids = input_ids, input_ids.cpu()
        ordinary = ~torch.isin(input_ids, special)
        selected = (torch.rand(shape, generator=generator) < self.select_rate) & ordinary
        fate = torch.rand(shape, generator=generator)
        drawable = torch.ones(self.vocab_size, dtype=torch.bool)
        drawable[special] = False
        candidates = drawable.nonzero().squeeze(1)
        picks = torch.randint(len(candidates), shape, generator=generator)

        masked_ids = input_ids.clone()
        masked_ids[selected & (fate < MASK_SHARE)] = self.mask_token_id
        replaced = selected & (fate >= MASK_SHARE) & (fate < MASK_SHARE + RANDOM_SHARE)
        masked_ids[replaced] = candidates[picks[replaced]].to(masked_ids.dtype)
        device = device_ids.device
        return MaskedBatch(
            input_ids=masked_ids.to(device),
            selected=selected.to(device),
            labels=input_ids[selected].to(device),
        )
