"""docs/models.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.quality.families import COLUMNS, MODELS
from model.checkpoints.checkpoint import OWN_MODEL_TYPE
from model.checkpoints.families import FAMILIES

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")


def test_the_table_of_families_is_whole() -> None:
    """Every model_type that is read has its line, and no other."""
    lines = re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)
    assert sorted(lines) == sorted([*FAMILIES, OWN_MODEL_TYPE])


def test_the_example_is_the_code() -> None:
    """A family in under 60 lines, as it stands."""
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert example == (ROOT / "model" / "families" / "electra.py").read_text(encoding="utf-8")
    assert len(example.splitlines()) < 60


def test_figures_are_of_known_models() -> None:
    """The measured table has all of its columns, and its lines in order."""
    table = PAGE.split("<!-- begin: benchmarks/quality/families.py -->\n")[1].split("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    assert rows[0] == ["model", *COLUMNS]
    names = [row[0] for row in rows[2:]]
    assert names == [name for name in MODELS if name in names]
    assert {len(row) for row in rows[2:]} == {1 + len(COLUMNS)}
