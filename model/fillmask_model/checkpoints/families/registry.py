"""Families by the field `model_type` of Hugging Face's config.json."""

from __future__ import annotations

from fillmask_model.checkpoints.families import (
    albert,
    bert,
    distilbert,
    electra,
    esm,
    modernbert,
    mpnet,
    roberta,
)
from fillmask_model.checkpoints.families.family import Family

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
