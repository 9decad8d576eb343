"""The task sparse, which makes the sparse vector of a text."""

import json
from collections.abc import Iterator

import numpy as np
from pydantic_core import to_json

from fillmask.cli.formats.output import Layout
from fillmask.cli.tasks.base import Done, TaskRows
from fillmask.cli.terminal.style import Style
from fillmask.cli.terminal.tables import format_weights
from fillmask.tasks.sparse.parameters import SparseParameters
from fillmask.tasks.sparse.results import SparseEmbedding

_TYPES = {"indices": [int], "values": [np.float32], "tokens": [str]}


class SparseRows(TaskRows):
    """Sparse vector of a text."""

    _field = "vector"

    def answer(self, result: SparseEmbedding) -> bytes:
        """Return the tokens next to their ids."""
        return to_json(result.to_dict())

    def layout(self, parameters: SparseParameters, *, row_parameters: bool) -> Layout:  # noqa: ARG002 - for fills
        return Layout(self._field, _TYPES, json.loads, tuple(_TYPES))

    def table(self, done: Done, style: Style) -> Iterator[str]:
        return format_weights(done.result, style)
