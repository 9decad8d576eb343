"""Checkpoint families: how each names its tensors and its configuration fields.

A family is a small mapping onto the one encoder. Hugging Face's `config.json` says in `model_type`
which family a checkpoint belongs to.
"""

from __future__ import annotations

from model.families import bert
from model.families.family import Family

FAMILIES: dict[str, Family] = {"bert": bert.FAMILY}

__all__ = ["FAMILIES", "Family"]
