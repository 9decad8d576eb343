"""Validation and round trips of configurations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.pretraining.config import TrainConfig
from tests.model.samples import SMALL, small_config


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[(name, value) for name in SMALL for value in (0, -1, 2.0, "8", None, True)],
        *[(name, 2**24 + 1) for name in SMALL],
        ("num_layers", 1_001),
        ("num_heads", 5),
        ("type_vocab_size", -1),
        ("type_vocab_size", 1.5),
        ("type_vocab_size", 2**24 + 1),
        ("norm_eps", 0),
        ("norm_eps", 1),
        ("norm_eps", float("nan")),
        ("norm_eps", "1e-12"),
        ("norm_placement", "middle"),
        ("activation", "mish"),
        ("positions", "rotary"),
        ("ffn_bias", True),
        ("norm_affine", "false"),
        ("embedding_norm", 1),
        ("final_norm", None),
        ("attention_bias", "no"),
        ("head_transform", 0),
        ("head_bias", "yes"),
    ],
)
def test_a_bad_encoder_field_is_named(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=field):
        small_config(**{field: value})


def test_an_encoder_config_survives_json() -> None:
    for config in (
        small_config(),
        small_config(norm_placement="pre", positions="fixed", norm_eps=1e-5, head_bias=False),
        EncoderConfig.packed(vocab_size=9, d_model=4, num_layers=1, num_heads=2, max_positions=3),
    ):
        assert EncoderConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("steps", 0),
        ("steps", 10.5),
        ("batch_rows", 0),
        ("accumulate_passes", 0),
        ("row_tokens", 7),
        ("learning_rate", 0.0),
        ("learning_rate", -1e-4),
        ("learning_rate", float("nan")),
        ("clip_norm", 0.0),
        ("weight_decay", -0.1),
        ("select_rate", 0.0),
        ("select_rate", 1.0),
        ("seed", -1),
        ("warmup_steps", -1),
        ("warmup_steps", 10_000),
        ("evaluate_every_steps", 0),
        ("checkpoint_every_steps", 0),
        ("evaluation_rows", 0),
    ],
)
def test_a_bad_training_field_is_named(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=field):
        TrainConfig(**{field: value})


def test_training_may_do_without_warm_up_and_decay_of_weights() -> None:
    # Zero is valid for the seed, warm-up and weight decay.
    config = TrainConfig(seed=0, warmup_steps=0, weight_decay=0)
    assert (config.warmup_steps, config.weight_decay) == (0, 0)
