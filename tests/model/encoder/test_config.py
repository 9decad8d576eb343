"""Validation and round trips of configurations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fillmask_model.encoder.config import EncoderConfig
from tests.model.samples import SMALL, small_config


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[(name, value) for name in SMALL for value in (0, -1, 2.0, "8", None, True)],
        *[(name, 2**24 + 1) for name in SMALL],
        ("num_layers", 1_001),
        ("num_heads", 5),
        ("type_vocab_size", -1),
        ("norm_eps", 0),
        ("norm_eps", 1),
        ("norm_eps", "1e-12"),
        ("norm_placement", "middle"),
        ("ffn_bias", True),
        ("norm_affine", "false"),
        ("attention_bias", "no"),
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
