"""Values of config.json that each family must refuse before it computes with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import transformers

from fillmask_model.checkpoints.checkpoint import check_config
from fillmask_model.checkpoints.errors import CheckpointError
from tests.model.checkpoints.families.samples import SAMPLES

_HUGE = 10**12


@pytest.mark.parametrize(
    ("sample", "changes", "reason"),
    [
        ("ALBERT, one group", {"num_hidden_layers": _HUGE}, "num_hidden_layers must be"),
        ("ALBERT, one group", {"num_hidden_layers": "3"}, "num_hidden_layers must be"),
        ("ALBERT, one group", {"num_hidden_groups": 4}, "num_hidden_groups must be"),
        ("BERT, three heads", {"num_hidden_layers": _HUGE}, "num_layers must be"),
        ("ESM-1b", {"pad_token_id": []}, "pad_token_id must be a whole number"),
        ("ModernBERT", {"num_hidden_layers": _HUGE, "layer_types": None}, "num_hidden_layers"),
        ("ModernBERT", {"layer_types": [[]] * 4}, "layer_types must have one entry"),
        ("ModernBERT", {"local_attention": "8"}, "local_attention must be a whole number"),
        (
            "ModernBERT",
            {"rope_parameters": {"full_attention": {"rope_theta": 10**400}}},
            r"rope_parameters\.full_attention\.rope_theta must be below",
        ),
        ("RoBERTa, one type", {"pad_token_id": "1"}, "pad_token_id must be a whole number"),
    ],
)
def test_a_value_of_another_kind_or_size_is_named(
    sample: str, changes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    family, fields = SAMPLES[sample].family, SAMPLES[sample].fields
    config = getattr(transformers, f"{family}Config")(**fields).to_dict()
    (tmp_path / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(CheckpointError, match=reason):
        check_config(tmp_path)
