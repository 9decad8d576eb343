"""What the command does with the results of a task: rows of files, and a table."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from fillmask.bundles.bundle import Bundle
from fillmask.cli.errors import CommandError
from fillmask.cli.formats.output import Layout
from fillmask.cli.terminal.style import Style
from fillmask.errors import quote
from fillmask.parameters.limits import Limits
from fillmask.parameters.texts import InputText
from fillmask.parameters.validation import ValidationContext
from fillmask.tasks.task import Task, tasks_of


class Done(NamedTuple):
    """A text with its result."""

    bundle: Bundle
    text: InputText
    parameters: Any
    result: Any


class TaskRows:
    """Rows and table of a task. The base class writes results as JSON."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def read_parameters(self, parameters: object, limits: Limits) -> Any:
        """Validate parameters by the rules that HTTP and Python share.

        Raises:
            InvalidRequestError: a parameter is invalid.
        """
        return self.task.parameters.read(parameters, ValidationContext(limits))

    def answer(self, result: Any) -> bytes:
        """Return a result as the answer of a row, one line of JSON."""
        return b"".join(self.task.to_json(result))

    def layout(self, parameters: Any, *, row_parameters: bool) -> Layout:  # noqa: ARG002 - for fills
        """Return the layout of answers.

        It depends on the parameters of rows without their own, and on whether rows may have some,
        but not on these, so that all shards have the same columns.
        """
        return Layout("result", {"result": str}, lambda one: {"result": one.decode()}, ("result",))

    def table(self, done: Done, style: Style) -> Iterator[str]:  # noqa: ARG002 - for tables
        """Format a result as the lines of a table for a terminal."""
        yield self.answer(done.result).decode()


def check_bundle(task: Task, bundle: Bundle, *, pairs: bool) -> None:
    """Reject a bundle that lacks the task, or pairs of texts that the command asks for.

    Raises:
        CommandError: the bundle cannot do this.
    """
    allowed = [one.name for one in tasks_of(bundle.tasks)]
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
