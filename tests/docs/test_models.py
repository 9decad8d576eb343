"""Checkpoint families and figures of docs/models.md."""

from __future__ import annotations

import re

from benchmarks import generated_block
from benchmarks.quality.families import COLUMNS, MODELS
from fillmask_model.checkpoints.checkpoint import OWN_MODEL_TYPE
from fillmask_model.checkpoints.registry import FAMILIES
from tests.docs import pages

PAGE = pages.DOCS / "models.md"


def test_every_family_is_named() -> None:
    cells = re.findall(r"^\| (`[^|]+`) \|", pages.read(PAGE), re.MULTILINE)
    families = re.findall(r"`([a-z0-9_-]+)`", " ".join(cells))
    assert families[0] == "model_type"  # the head of the table
    assert sorted(families[1:]) == sorted([*FAMILIES, OWN_MODEL_TYPE])


def test_figures_are_of_known_models() -> None:
    table = generated_block.read(PAGE, "quality/families").split("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    assert rows[0] == ["model", *COLUMNS]
    names = [row[0] for row in rows[2:]]
    assert names == [name for name in MODELS if name in names]
    assert {len(row) for row in rows[2:]} == {1 + len(COLUMNS)}
