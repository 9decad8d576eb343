"""Validation of configurations, and the number of parameters."""

from __future__ import annotations

from typing import Any

import pytest

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.empty import count_parameters
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


def test_parameters_of_bert_base() -> None:
    # The counts of Hugging Face's classes for masks and for two labels.
    config = EncoderConfig(
        vocab_size=30_522, d_model=768, num_layers=12, num_heads=12, d_ff=3072, max_positions=512
    )
    count = count_parameters(config, ClassifierConfig(labels=("no", "yes")))
    assert (count.tied, count.classifier) == (109_514_298, 109_483_778)
