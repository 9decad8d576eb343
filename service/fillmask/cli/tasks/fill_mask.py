"""The task fill-mask, which fills the masks of a text."""

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from fillmask.cli.formats.base import Fields
from fillmask.cli.formats.output import ROW, Layout
from fillmask.cli.tasks.base import Done, TaskRows
from fillmask.cli.terminal.style import Style
from fillmask.cli.terminal.tables import format_fills
from fillmask.tasks.fill_mask.parameters import FillMaskParameters
from fillmask.tasks.fill_mask.results import (
    FILL_FIELDS,
    Fill,
    JointFill,
    TargetFill,
    WordFill,
)


class FillMaskRows(TaskRows):
    """Fills of the masks of a text."""

    _field = "fills"

    def layout(self, parameters: FillMaskParameters, *, row_parameters: bool) -> Layout:
        kinds: list[type[Fill]] = [Fill]
        kinds += [TargetFill] * bool(parameters.targets)
        kinds += [WordFill] * (parameters.granularity == "word")
        kinds += [JointFill] * (parameters.strategy == "joint")
        present = {field.name for kind in kinds for field in fields(kind)}
        if parameters.on_long_text != "window":
            present.remove("window")
        given = [name for name in FILL_FIELDS if row_parameters or name in present]
        # Fills with any options have this type. Fields that a fill lacks are null.
        types = {"fills": [{"mask": int, **FILL_FIELDS}]}
        return Layout(self._field, types, _values, (ROW, "mask", "rank", *given), _lines)

    def table(self, done: Done, style: Style) -> Iterator[str]:
        return format_fills(str(done.text), done.result.masks, style)


def _masks(answer: bytes) -> Iterator[tuple[int, list[Fields]]]:
    """Return the number and the fills of each mask. Joint fills form a single list."""
    fills: list[Any] = json.loads(answer)
    return enumerate(fills if fills and isinstance(fills[0], list) else [fills], 1)


def _values(answer: bytes) -> Fields:
    """Return the fills of all masks as one list."""
    return {"fills": [{"mask": mask, **fill} for mask, fills in _masks(answer) for fill in fills]}


def _lines(answer: bytes) -> Iterator[Fields]:
    for mask, fills in _masks(answer):
        for rank, fill in enumerate(fills, 1):
            yield {"mask": mask, "rank": rank, **fill}
