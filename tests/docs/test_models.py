"""Checkpoint families of docs/models.md."""

from __future__ import annotations

import re

from fillmask_model.checkpoints.checkpoint import OWN_MODEL_TYPE
from fillmask_model.checkpoints.registry import FAMILIES
from tests.docs import pages

PAGE = pages.DOCS / "models.md"


def test_every_family_is_named() -> None:
    cells = re.findall(r"^\| (`[^|]+`) \|", pages.read(PAGE), re.MULTILINE)
    families = re.findall(r"`([a-z0-9_-]+)`", " ".join(cells))
    assert families[0] == "model_type"  # the head of the table
    assert sorted(families[1:]) == sorted([*FAMILIES, OWN_MODEL_TYPE])
