"""Number of operations, compared with torch's counter on the real encoder."""

from __future__ import annotations

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.comparison.in_process.operations import Sizes, operations
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import TiedEncoder

CONFIG = EncoderConfig(
    vocab_size=211, d_model=48, num_layers=3, num_heads=4, d_ff=80, max_positions=32
)
SIZES = Sizes(num_layers=3, d_model=48, d_ff=80, vocab_size=211)


@pytest.mark.parametrize("tokens", [1, 32])
def test_equals_torchs_count_where_every_token_is_a_mask(tokens: int) -> None:
    # The last layer computes only the rows of masks, which are all rows here.
    input_ids = torch.arange(tokens)[None]
    # torch's counter omits fused attention
    written_out = sdpa_kernel(SDPBackend.MATH)
    with FlopCounterMode(display=False) as counter, torch.no_grad(), written_out:
        TiedEncoder(CONFIG)(input_ids, torch.ones_like(input_ids))
    assert operations(SIZES, tokens, tokens) == counter.get_total_flops()


def test_a_mask_fewer_saves_its_row_of_the_last_layer_and_the_head() -> None:
    # The row passes through query, attention, output, feed-forward, transform and projection.
    row = 2 * (2 * 48**2 + 2 * 48 * 80) + 4 * 20 * 48 + 2 * 48**2 + 2 * 48 * 211
    assert operations(SIZES, 20, 3) - operations(SIZES, 20, 2) == row
