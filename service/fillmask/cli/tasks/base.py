"""Interface of the tasks."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, NamedTuple

from fillmask.bundles.bundle import Bundle
from fillmask.bundles.description import Task as BundleTask
from fillmask.cli.errors import CommandError
from fillmask.cli.formats.output import Layout
from fillmask.cli.terminal.style import Style
from fillmask.errors import quote
from fillmask.models.served_model import ServedModel
from fillmask.parameters.limits import Limits
from fillmask.parameters.texts import InputText
from fillmask.parameters.validation import TaskParameters, ValidationContext

TaskName = Literal["fill-mask", "score", "classify", "sparse"]
_TASKS_OF_BUNDLES: dict[BundleTask, tuple[TaskName, ...]] = {
    "fill-mask": ("fill-mask", "score"),
    "text-classification": ("classify",),
    "sparse": ("sparse",),
}


class Done(NamedTuple):
    """A text with its result."""

    bundle: Bundle
    text: InputText
    options: Any
    result: Any


class Task(ABC):
    """Task that the command runs for each text.

    `options` are those of the task's parameters, and `result` is that of one text.
    """

    name: ClassVar[TaskName]
    parameters: ClassVar[type[TaskParameters]]
    field: ClassVar[str]  # of the results in JSONL

    def read_options(self, parameters: object, limits: Limits) -> Any:
        """Validate parameters by the rules that HTTP and Python share.

        Raises:
            InvalidRequestError: a parameter is invalid.
        """
        return self.parameters.read(parameters, ValidationContext(limits)).options

    def check_options(self, model: ServedModel, options: Any) -> None:  # noqa: B027 - most accept all
        """Reject options that are invalid for every text.

        Raises:
            InvalidRequestError: an option is invalid.
        """

    @abstractmethod
    async def run(self, model: ServedModel, text: InputText, options: Any, label: str) -> Any:
        """Return the result for a text or a pair, which messages call `label`.

        Raises:
            FillMaskError: the text is invalid, or the model has failed.
        """

    @abstractmethod
    def response(self, result: Any) -> bytes:
        """Return a result as the response of the HTTP API to a single text."""

    async def answer(self, result: Any) -> bytes:
        """Return a result as the answer of a row, one line of JSON."""
        return self.response(result)

    @abstractmethod
    def layout(self, options: Any, *, row_parameters: bool) -> Layout:
        """Return the layout of answers.

        It depends on the options of rows without parameters of their own, and on whether rows may
        have some, but not on these, so that all shards have the same columns.
        """

    @abstractmethod
    def estimate_chars(self, bundle: Bundle, text: InputText, options: Any) -> int:
        """Estimate the characters of a text and its answer, which bound the rows in flight."""

    @abstractmethod
    def table(self, done: Done, style: Style) -> Iterator[str]:
        """Format a result as the lines of a table for a terminal."""


def check_bundle(task: Task, bundle: Bundle, *, pairs: bool) -> None:
    """Reject a bundle that lacks the task, or pairs of texts that the command asks for.

    Raises:
        CommandError: the bundle cannot do this.
    """
    allowed = [name for one in bundle.tasks for name in _TASKS_OF_BUNDLES[one]]
    if task.name not in allowed:
        raise CommandError(
            f"The model {quote(bundle.name)} has only the task {bundle.tasks[0]}; --task must be "
            f"{' or '.join(allowed)} (got {task.name})."
        )
    if pairs and not bundle.pairs:
        raise CommandError(
            f"The model {quote(bundle.name)} reads single texts; use a model that reads pairs, or "
            "remove the second text."
        )
