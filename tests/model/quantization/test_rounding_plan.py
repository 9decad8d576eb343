"""Choice of the float32 channels and of the factors of every linear map."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.quantization.input_recorder import InputStatistics
from fillmask_model.quantization.layer_precision import VOCABULARY
from fillmask_model.quantization.rounding_plan import (
    FLOAT_CHANNELS,
    RoundingPlan,
    choose_float_channels,
)
from tests.model.samples import plan_of, random_encoder, small_config

CONFIGS = {
    "bert": small_config(),
    "packed": EncoderConfig.packed(
        vocab_size=50, d_model=16, num_layers=2, num_heads=4, max_positions=17
    ),
}


def searched_plan(model: TiedEncoder) -> RoundingPlan:
    """Return a plan from a few random texts."""
    rows = np.random.default_rng(4).integers(0, model.config.vocab_size, (40, 12), np.int32)
    return RoundingPlan.from_rows(model, rows, mask_token_id=0, seed=0)


def statistics_of(rows: np.ndarray) -> InputStatistics:
    return InputStatistics(rows.T @ rows, rows.astype(np.float32))


def test_a_channel_that_widens_every_row_goes_before_one_that_is_widest_once() -> None:
    # The choice depends on the scales of rows, not on a channel's largest value.
    x = np.random.default_rng(3).uniform(-1, 1, (400, 32))
    x[:, 7] = 10
    x[11, 5] = 100
    assert choose_float_channels(statistics_of(np.delete(x, 11, axis=0)), 1).tolist() == [7]
    assert choose_float_channels(statistics_of(x), 2).tolist() == [5, 7]


@pytest.mark.parametrize("name", CONFIGS)
def test_every_map_has_factors(name: str) -> None:
    # Linear maps with the same input share factors. A factor of zero marks a float32 channel.
    model = random_encoder(CONFIGS[name])
    plan = searched_plan(model)
    plan.check(model)
    linear = {n for n, module in model.named_modules() if isinstance(module, nn.Linear)}
    assert set(plan.factors) == linear | {VOCABULARY}
    for part in ("key", "value"):
        assert torch.equal(plan.factors["blocks.1.query"], plan.factors[f"blocks.1.{part}"])
    width = model.config.d_model
    assert int((plan.factors["blocks.0.query"] == 0).sum()) == min(FLOAT_CHANNELS, width // 8)
    assert int((plan.factors["blocks.0.ffn_in"] == 0).sum()) == 0
    assert set(plan.factors["blocks.1.ffn_out"].tolist()) == {0, 1}
    assert all(bool((factors >= 0).all()) for factors in plan.factors.values())


def test_the_largest_channels_are_the_float_ones() -> None:
    # Large gains of a layer norm make outliers in channels 3 and 17 of the inputs.
    model = random_encoder(small_config(d_model=32, num_heads=2))
    with torch.no_grad():
        model.get_parameter("embeddings.norm.weight")[[3, 17]] = 50
    factors = searched_plan(model).factors["blocks.0.query"]
    assert {3, 17} <= set(torch.nonzero(factors == 0).flatten().tolist())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"blocks.0.query": None}, "missing or unexpected: blocks.0.query"),
        ({"blocks.9.query": torch.ones(24)}, "missing or unexpected: blocks.9.query"),
        ({"blocks.0.query": torch.ones(23)}, "blocks.0.query must have the shape"),
        ({"blocks.0.query": -torch.ones(24)}, "blocks.0.query must be finite and at least 0"),
        ({"blocks.0.key": torch.rand(24)}, "blocks.0.key must equal the factors of blocks.0.query"),
        ({"blocks.1.output": torch.zeros(24)}, "blocks.1.output must be above 0"),
        ({"blocks.1.ffn_in": torch.zeros(24)}, "blocks.1.ffn_in must be above 0"),
        ({VOCABULARY: torch.zeros(24)}, "vocabulary must be above 0"),
        ({"blocks.1.ffn_out": torch.full((40,), 0.5)}, "blocks.1.ffn_out must be 0 or 1"),
        ({VOCABULARY: torch.full((24,), torch.nan)}, "vocabulary must be finite"),
    ],
)
def test_a_plan_of_another_encoder_is_refused(
    change: dict[str, torch.Tensor | None], message: str
) -> None:
    # Names, shapes and values of the factors must fit the encoder.
    model = random_encoder(small_config())
    factors = {**plan_of(model).factors, **change}
    plan = RoundingPlan({name: f for name, f in factors.items() if f is not None})
    with pytest.raises(ValueError, match=message):
        plan.check(model)
