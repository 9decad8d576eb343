"""Columns that CSV adds for the results of each task."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from fillmask.cli.formats.answers import fills_of
from fillmask.cli.tasks.base import TaskName
from fillmask.parameters.classify import ClassificationOptions
from fillmask.parameters.fill_mask import FillOptions
from fillmask.results.fills import FILL_FIELDS, Fill, JointFill, TargetFill, WordFill

ROW = "row"  # column for the number of a row, from 1


@dataclass(frozen=True, slots=True)
class CsvLayout:
    """Layout of the results of a task.

    Attributes:
        columns: function that returns the names of the added columns, given the options of rows
            without parameters of their own, and whether rows may have parameters of their own.
        lines: function that yields the values of the added columns for each line of an answer.
    """

    columns: Callable[[Any, bool], tuple[str, ...]]
    lines: Callable[[bytes], Iterator[Mapping[str, Any]]]


def _fill_columns(options: FillOptions, row_parameters: bool) -> tuple[str, ...]:  # noqa: FBT001 - see CsvLayout
    """Return the columns of the fields that fills with these options may have.

    The parameters of single rows do not change the columns, so that all shards have the same
    columns.
    """
    kinds: list[type[Fill]] = [Fill]
    kinds += [TargetFill] * bool(options.targets)
    kinds += [WordFill] * (options.granularity == "word")
    kinds += [JointFill] * (options.strategy == "joint")
    present = {field.name for kind in kinds for field in fields(kind)}
    if options.on_long_text != "window":
        present.remove("window")
    return ROW, "mask", "rank", *(one for one in FILL_FIELDS if row_parameters or one in present)


def _fill_lines(answer: bytes) -> Iterator[Mapping[str, Any]]:
    for mask, fills in enumerate(fills_of(answer), 1):
        for rank, fill in enumerate(fills, 1):
            yield {"mask": mask, "rank": rank, **fill}


def _label_columns(options: ClassificationOptions, _row_parameters: bool) -> tuple[str, ...]:  # noqa: FBT001 - see CsvLayout
    """Return the columns of the best label, and with `top_k` a column of all requested labels."""
    return ("label", "score") if options.top_k is None else ("label", "score", "labels")


def _label_lines(answer: bytes) -> Iterator[Mapping[str, Any]]:
    labels = json.loads(answer)
    yield {**labels[0], "labels": labels}


def _one_line(answer: bytes) -> Iterator[Mapping[str, Any]]:
    yield json.loads(answer)


LAYOUTS: Mapping[TaskName, CsvLayout] = {
    "fill-mask": CsvLayout(_fill_columns, _fill_lines),
    "score": CsvLayout(lambda *_: ("log_prob", "pseudo_perplexity"), _one_line),
    "classify": CsvLayout(_label_columns, _label_lines),
    "sparse": CsvLayout(lambda *_: ("indices", "values", "tokens"), _one_line),
}
