"""Mappings of checkpoint families to `TiedEncoder`, by tensor names and configuration fields.

The field `model_type` of Hugging Face's `config.json` selects the family.
"""

from __future__ import annotations

from model.checkpoints.families import (
    albert,
    bert,
    distilbert,
    electra,
    esm,
    modernbert,
    mpnet,
    roberta,
)
from model.checkpoints.families.family import Family, ParsedConfig
from model.checkpoints.families.fields import Fields

FAMILIES: dict[str, Family] = {
    "albert": albert.FAMILY,
    "bert": bert.FAMILY,
    "camembert": roberta.FAMILY,
    "distilbert": distilbert.FAMILY,
    "electra": electra.FAMILY,
    "esm": esm.FAMILY,
    "modernbert": modernbert.FAMILY,
    "mpnet": mpnet.FAMILY,
    "roberta": roberta.FAMILY,
    "xlm-roberta": roberta.FAMILY,
}

__all__ = ["FAMILIES", "Family", "Fields", "ParsedConfig"]
