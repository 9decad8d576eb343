"""The task classify, which returns the labels of a text with their scores."""

from collections.abc import Iterator

from fillmask.bundles.bundle import Bundle
from fillmask.bundles.description import Classification
from fillmask.cli.tasks.base import Task
from fillmask.cli.terminal.style import Style
from fillmask.cli.terminal.text_tables import format_labels
from fillmask.parameters.classify import ClassificationOptions, ClassifyParameters
from fillmask.parameters.limits import Limits
from fillmask.parameters.texts import InputText
from fillmask.parameters.validation import ValidationContext
from fillmask.registry.served_model import ServedModel
from fillmask.results.labels import LabelScore, labels_to_json

Labels = list[LabelScore]
_CHARS_PER_LABEL = 60  # characters of a label's JSON without its name


class ClassifyTask(Task[ClassificationOptions, Labels]):
    """Task that returns the labels of a text with their scores."""

    name = "classify"
    parameters = ("top_k", "function_to_apply", "on_long_text")
    field = "labels"

    def read_options(self, parameters: object, limits: Limits) -> ClassificationOptions:
        """See `Task`."""
        return ClassifyParameters.read(parameters, ValidationContext(limits)).options

    async def run(
        self, model: ServedModel, text: InputText, options: ClassificationOptions, label: str
    ) -> Labels:
        """See `Task`."""
        result = await model.require_classification().classify([text], [options], label)
        [labels] = result.labels
        assert isinstance(labels, list)  # noqa: S101 - the pipeline raises the errors of texts
        return labels

    async def answer(self, result: Labels) -> bytes:
        """See `Task`. The answer is the only list in the response."""
        return self.response(result)[1:-1]

    def estimate_chars(
        self, bundle: Bundle, text: InputText, options: ClassificationOptions
    ) -> int:
        """See `Task`."""
        names = _head(bundle).labels
        labels = min(options.top_k or len(names), len(names))
        return len(text) + labels * (max(map(len, names)) + _CHARS_PER_LABEL)

    def response(self, result: Labels) -> bytes:
        """See `Task`."""
        return labels_to_json([result], single=True)

    def table(
        self,
        bundle: Bundle,
        text: InputText,  # noqa: ARG002 - for tasks with fills
        options: ClassificationOptions,
        result: Labels,
        style: Style,
    ) -> Iterator[str]:
        """See `Task`."""
        has_logits = options.function_to_apply == "none" or (
            options.function_to_apply is None and _head(bundle).problem_type == "regression"
        )
        return format_labels(result, style, has_logits=has_logits)


def _head(bundle: Bundle) -> Classification:
    assert bundle.classification is not None  # noqa: S101 - `check_bundle` rejects other bundles
    return bundle.classification
