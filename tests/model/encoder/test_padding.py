"""Independence of logits from padding and from other texts of the batch.

Tolerance: 1e-5 absolute, with logits of order 1.
"""

from __future__ import annotations

import pytest
import torch

from fillmask_model.encoder.config import EncoderConfig
from tests.model.samples import random_encoder, random_ids, small_config

TOLERANCE = 1e-5
CONFIGS = (small_config(), small_config(norm_placement="pre", final_norm=True))


@pytest.mark.parametrize("config", CONFIGS)
def test_padding_changes_no_answer(config: EncoderConfig) -> None:
    # Logits change by less than 1e-5 for any length of the padding and any ids in the padding.
    model = random_encoder(config)
    input_ids = random_ids((2, 6), config.vocab_size)
    mask_indicator = torch.tensor([[0, 1, 0, 0, 1, 0], [1, 0, 0, 0, 0, 1]])
    with torch.inference_mode():
        bare = model(input_ids, mask_indicator)
        for padding_tokens in (1, 5, 11):
            junk = random_ids((2, padding_tokens), config.vocab_size, seed=padding_tokens)
            nothing = torch.zeros_like(junk)
            padded = model(
                torch.cat([input_ids, junk], dim=1),
                torch.cat([mask_indicator, nothing], dim=1),
                torch.cat([torch.ones_like(input_ids), nothing], dim=1),
            )
            torch.testing.assert_close(padded, bare, rtol=0, atol=TOLERANCE)


def test_without_its_mask_padding_would_count() -> None:
    model = random_encoder(small_config())
    input_ids, attention_mask = random_ids((2, 6), 61), torch.tensor([[1] * 6, [1, 1, 1, 0, 0, 0]])
    mask_indicator = torch.tensor([[0, 1, 0, 0, 1, 0], [1, 0, 0, 0, 0, 0]])
    with torch.inference_mode():
        masked = model(input_ids, mask_indicator, attention_mask)
        unmasked = model(input_ids, mask_indicator)
    torch.testing.assert_close(masked[:2], unmasked[:2], rtol=0, atol=TOLERANCE)
    assert (masked[2] - unmasked[2]).abs().max() > 0.01


def test_a_sequence_of_padding_changes_no_other() -> None:
    model = random_encoder(small_config())
    input_ids, mask_indicator = random_ids((2, 5), 61), torch.tensor([[0, 1, 0, 0, 1], [0] * 5])
    attention_mask = torch.tensor([[1] * 5, [0] * 5])
    with torch.inference_mode():
        beside = model(input_ids, mask_indicator, attention_mask)
        alone = model(input_ids[:1], mask_indicator[:1])
    torch.testing.assert_close(beside, alone, rtol=0, atol=TOLERANCE)
