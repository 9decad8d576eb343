"""The task sparse, which makes the sparse vector of a text."""

import json
from collections.abc import Iterator

import numpy as np
from pydantic_core import to_json

from fillmask.bundles.bundle import Bundle
from fillmask.cli.formats.output import Layout
from fillmask.cli.tasks.base import Done, Task
from fillmask.cli.terminal.style import Style
from fillmask.cli.terminal.tables import format_weights
from fillmask.models.served_model import ServedModel
from fillmask.parameters.texts import InputText
from fillmask.tasks.sparse.parameters import SparseOptions, SparseParameters
from fillmask.tasks.sparse.results import SparseEmbedding, vectors_to_json

# dimensions of a text of a trained model, and characters of a dimension's JSON
_DIMENSIONS, _CHARS_PER_DIMENSION = 300, 30
_TYPES = {"indices": [int], "values": [np.float32], "tokens": [str]}


class SparseTask(Task):
    """Sparse vector of a text."""

    name = "sparse"
    parameters = SparseParameters
    field = "vector"

    async def run(
        self, model: ServedModel, text: InputText, options: SparseOptions, label: str
    ) -> SparseEmbedding:
        [vector] = await model.require_sparse().embed([text], [options], label)
        assert isinstance(vector, SparseEmbedding)  # noqa: S101 - the pipeline raises the errors of texts
        return vector

    def response(self, result: SparseEmbedding) -> bytes:
        return vectors_to_json([result])

    async def answer(self, result: SparseEmbedding) -> bytes:
        """Return the tokens next to their ids."""
        return to_json(result.to_dict())

    def layout(self, options: SparseOptions, *, row_parameters: bool) -> Layout:  # noqa: ARG002 - for fills
        return Layout(self.field, _TYPES, json.loads, tuple(_TYPES))

    def estimate_chars(self, bundle: Bundle, text: InputText, options: SparseOptions) -> int:  # noqa: ARG002 - for masks
        return len(text) + _CHARS_PER_DIMENSION * (options.top_n or _DIMENSIONS)

    def table(self, done: Done, style: Style) -> Iterator[str]:
        return format_weights(done.result, style)
