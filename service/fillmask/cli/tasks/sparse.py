"""The task sparse, which makes the sparse vector of a text."""

from collections.abc import Iterator

from pydantic_core import to_json

from fillmask.bundles.bundle import Bundle
from fillmask.cli.tasks.base import Task
from fillmask.cli.terminal.style import Style
from fillmask.cli.terminal.text_tables import format_weights
from fillmask.parameters.limits import Limits
from fillmask.parameters.sparse import SparseOptions, SparseParameters
from fillmask.parameters.texts import InputText
from fillmask.parameters.validation import ValidationContext
from fillmask.registry.served_model import ServedModel
from fillmask.results.sparse import SparseEmbedding, vectors_to_json

# dimensions of a text of a trained model, and characters of a dimension's JSON
_DIMENSIONS, _CHARS_PER_DIMENSION = 300, 30


class SparseTask(Task[SparseOptions, SparseEmbedding]):
    """Task that makes the sparse vector of a text."""

    name = "sparse"
    parameters = ("input_type", "top_n", "min_weight", "on_long_text")
    field = "vector"

    def read_options(self, parameters: object, limits: Limits) -> SparseOptions:
        """See `Task`."""
        return SparseParameters.read(parameters, ValidationContext(limits)).options

    async def run(
        self, model: ServedModel, text: InputText, options: SparseOptions, label: str
    ) -> SparseEmbedding:
        """See `Task`."""
        [vector] = await model.require_sparse().embed([text], [options], label)
        assert isinstance(vector, SparseEmbedding)  # noqa: S101 - the pipeline raises the errors of texts
        return vector

    async def answer(self, result: SparseEmbedding) -> bytes:
        """See `Task`. The answer has the tokens next to their ids."""
        return to_json(result.to_dict())

    def estimate_chars(
        self,
        bundle: Bundle,  # noqa: ARG002 - for tasks with masks or labels
        text: InputText,
        options: SparseOptions,
    ) -> int:
        """See `Task`."""
        return len(text) + _CHARS_PER_DIMENSION * (options.top_n or _DIMENSIONS)

    def response(self, result: SparseEmbedding) -> bytes:
        """See `Task`."""
        return vectors_to_json([result])

    def table(
        self,
        bundle: Bundle,  # noqa: ARG002 - for tasks with labels
        text: InputText,  # noqa: ARG002 - the tokens have their own texts
        options: SparseOptions,  # noqa: ARG002 - all options have the same table
        result: SparseEmbedding,
        style: Style,
    ) -> Iterator[str]:
        """See `Task`."""
        return format_weights(result, style)
