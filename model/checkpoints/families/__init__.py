"""Checkpoint families: how each names its tensors and its configuration fields.

A family is a small mapping onto the one encoder. Hugging Face's `config.json` says in `model_type`
which family a checkpoint belongs to.
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
from model.checkpoints.families.family import Family, Reading
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

__all__ = ["FAMILIES", "Family", "Fields", "Reading"]
