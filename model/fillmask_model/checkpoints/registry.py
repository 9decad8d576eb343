"""Families by the field `model_type` of Hugging Face's config.json."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from fillmask_model.checkpoints.families import (
    albert,
    bert,
    distilbert,
    electra,
    esm,
    eurobert,
    gte,
    modernbert,
    mpnet,
    neobert,
    nomic,
    roberta,
)
from fillmask_model.checkpoints.mapping.family import Family

FAMILIES: dict[str, Family] = {
    "albert": albert.FAMILY,
    "bert": bert.FAMILY,
    "camembert": roberta.FAMILY,
    "data2vec-text": roberta.DATA2VEC,
    "distilbert": distilbert.FAMILY,
    "electra": electra.FAMILY,
    "ernie": bert.ERNIE,
    "esm": esm.FAMILY,
    "esmc": esm.ESMC,
    "eurobert": eurobert.FAMILY,
    "gte": gte.FAMILY,
    "megatron-bert": bert.MEGATRON,
    "modernbert": modernbert.FAMILY,
    "mpnet": mpnet.FAMILY,
    "neobert": neobert.FAMILY,
    "new": gte.NEW,
    "nomic_bert": nomic.FAMILY,
    "roberta": roberta.FAMILY,
    "roberta-prelayernorm": roberta.PRELAYERNORM,
    "ultrabert": eurobert.ULTRABERT,
    "xlm-roberta": roberta.FAMILY,
    "xlm-roberta-xl": roberta.XL,
}


def find_family(fields: Mapping[str, Any], name: str) -> tuple[str, Family]:
    """Return the `model_type` of a config.json and its family.

    Files from before transformers 2.2 have no `model_type`. Then the class in `architectures`
    decides, and without it the name of the checkpoint, as in transformers.

    Args:
        fields: the file's object.
        name: id of the repository, or name of the directory.

    Raises:
        ValueError: no family has this `model_type`.
    """
    given = fields.get("model_type")
    model_type = _infer(fields, name) if given is None else given
    if isinstance(model_type, str) and model_type in FAMILIES:
        return model_type, FAMILIES[model_type]
    raise ValueError(
        f"model_type must be one of {', '.join(FAMILIES)} (got {given!r}){_advice(given)}"
    )


def _infer(fields: Mapping[str, Any], name: str) -> str | None:
    classes = fields.get("architectures")
    first = classes[0] if isinstance(classes, list) and classes else None
    found = [
        model_type
        for model_type in FAMILIES
        if (
            str(first).lower().startswith(f"{_letters(model_type)}for")
            if first
            else model_type in name.lower()
        )
    ]
    return max(found, key=len, default=None)


def _letters(model_type: str) -> str:
    return model_type.replace("-", "").replace("_", "")


def _advice(model_type: object) -> str:
    near = get_close_matches(str(model_type), FAMILIES, 1)
    nearest = f"; the nearest is {near[0]}" if near else ""
    if model_type is None:
        nearest = "; add the field if the checkpoint is one of these"
    return f"{nearest}; docs/models.md says what each family needs, and what is missing"
