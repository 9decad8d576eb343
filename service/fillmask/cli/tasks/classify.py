"""The task classify, which returns the labels of a text with their scores."""

import json
from collections.abc import Iterator

from fillmask.cli.formats.base import Fields
from fillmask.cli.formats.output import Layout
from fillmask.cli.tasks.base import Done, TaskRows
from fillmask.cli.terminal.style import Style
from fillmask.cli.terminal.tables import format_labels
from fillmask.tasks.classify.parameters import ClassifyParameters
from fillmask.tasks.classify.results import LabelScore

Labels = list[LabelScore]
_BEST = {"label": str, "score": float}


class ClassifyRows(TaskRows):
    """Labels of a text with their scores."""

    _field = "labels"

    def layout(self, parameters: ClassifyParameters, *, row_parameters: bool) -> Layout:  # noqa: ARG002 - for fills
        types = {**_BEST, "labels": [_BEST]}
        cells = tuple(_BEST if parameters.top_k is None else types)
        return Layout(self._field, types, _values, cells)

    def table(self, done: Done, style: Style) -> Iterator[str]:
        head = done.bundle.classification
        assert head is not None  # noqa: S101 - `check_bundle` rejects other bundles
        has_logits = done.parameters.function_to_apply == "none" or (
            done.parameters.function_to_apply is None and head.problem_type == "regression"
        )
        return format_labels(done.result, style, has_logits=has_logits)


def _values(answer: bytes) -> Fields:
    """Return the best label and all labels."""
    labels = json.loads(answer)
    return {**labels[0], "labels": labels}
