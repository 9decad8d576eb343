"""Interface of the tasks."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Generic, Literal, TypeVar

from fillmask.bundles.bundle import Bundle
from fillmask.bundles.description import Task as BundleTask
from fillmask.cli.errors import CommandError
from fillmask.cli.terminal.style import Style
from fillmask.errors import quote
from fillmask.parameters.limits import Limits
from fillmask.parameters.texts import InputText
from fillmask.registry.served_model import ServedModel

TaskName = Literal["fill-mask", "score", "classify", "sparse"]
_TASKS_OF_BUNDLES: dict[BundleTask, tuple[TaskName, ...]] = {
    "fill-mask": ("fill-mask", "score"),
    "text-classification": ("classify",),
    "sparse": ("sparse",),
}

Options = TypeVar("Options")
Result = TypeVar("Result")


class Task(ABC, Generic[Options, Result]):
    """Task that the command runs for each text.

    Attributes:
        name: value of the flag --task.
        parameters: names of the request parameters.
        field: field of the results in JSONL.
    """

    name: ClassVar[TaskName]
    parameters: ClassVar[tuple[str, ...]]
    field: ClassVar[str]

    @abstractmethod
    def read_options(self, parameters: object, limits: Limits) -> Options:
        """Validate parameters by the rules that HTTP and Python share.

        Raises:
            InvalidRequestError: a parameter is invalid.
        """

    def check_options(self, model: ServedModel, options: Options) -> None:
        """Reject options that are invalid for every text.

        Raises:
            InvalidRequestError: an option is invalid.
        """

    @abstractmethod
    async def run(
        self, model: ServedModel, text: InputText, options: Options, label: str
    ) -> Result:
        """Return the result for a text or a pair.

        Args:
            model: model that has the task.
            label: name of the text in error messages.

        Raises:
            FillMaskError: the text is invalid, or the model has failed.
        """

    @abstractmethod
    async def answer(self, result: Result) -> bytes:
        """Return a result as the answer of a row, one line of JSON."""

    @abstractmethod
    def estimate_chars(self, bundle: Bundle, text: InputText, options: Options) -> int:
        """Estimate the number of characters of a text and its answer."""

    @abstractmethod
    def response(self, result: Result) -> bytes:
        """Return a result as the response of the HTTP API to a single text."""

    @abstractmethod
    def table(
        self, bundle: Bundle, text: InputText, options: Options, result: Result, style: Style
    ) -> Iterator[str]:
        """Format a result as the lines of a table for a terminal."""


AnyTask = Task[Any, Any]


def check_bundle(task: AnyTask, bundle: Bundle, *, pairs: bool) -> None:
    """Reject a bundle that lacks the task or whose model cannot read the requested pairs.

    Args:
        pairs: True if the command requests pairs of texts.

    Raises:
        CommandError: the bundle lacks the task, or the command requests pairs and the model reads
            only single texts.
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
