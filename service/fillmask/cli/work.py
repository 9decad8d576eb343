"""What a command does with the rows of a file or a stream, wherever it writes them."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

from fillmask.bundles.bundle import Bundle, read_bundle
from fillmask.cli.commands import OnError, RowsCommand
from fillmask.cli.errors import CommandError, RowError
from fillmask.cli.formats.base import Block, Rows, row_label
from fillmask.cli.formats.output import Output, Write, problem_of
from fillmask.cli.pipeline import RowPipeline
from fillmask.cli.progress import Progress
from fillmask.cli.requests import RowRequestReader
from fillmask.cli.tasks import TaskRows, check_bundle, rows_of
from fillmask.models.limits import limits_of
from fillmask.models.loader import load_model
from fillmask.settings import Settings


class ErrorPolicy:
    """Wrapper of a writer that applies the policy for invalid rows, and shows the progress.

    With "error", it writes the answers before the first problem and then raises an error. With
    "report", it writes problems like other answers.
    """

    def __init__(self, write: Write, name: str, on_error: OnError, progress: Progress) -> None:
        self._write = write
        self._name = name  # of the input
        self._on_error = on_error
        self._progress = progress
        self._rows = self._problems = 0

    def write(self, block: Block, answers: Sequence[bytes]) -> None:
        """Write rows with their answers.

        Raises:
            RowError: an answer is a problem and the policy is "error".
        """
        for place, answer in enumerate(answers):
            problem = problem_of(answer)
            if problem is None:
                continue
            self._problems += 1
            if self._on_error == "error":
                if place:
                    self._write(block.slice(0, place), answers[:place])
                raise RowError(f"{row_label(self._name, block.first + place)}: {problem}")
        self._write(block, answers)
        self._rows += len(block)
        self._progress.update(len(block))

    def check(self) -> None:
        """Reject an output without a result.

        Raises:
            CommandError: there are rows, and all of them have a problem.
        """
        if self._rows and self._problems == self._rows:
            raise CommandError(
                f"{self._name}: every row has an error, which the output tells; correct the "
                "rows or the options."
            )

    def __str__(self) -> str:
        rows = "1 row" if self._rows == 1 else f"{self._rows} rows"
        return f"{rows}, {self._problems} with an error" if self._problems else rows


@dataclass(frozen=True, slots=True)
class Work:
    """The rows of a command from index `start` up to, but not including, `stop`.

    It has all that their answers need besides the model. A `stop` of None means the unknown end.
    """

    command: RowsCommand
    settings: Settings
    task: TaskRows
    bundle: Bundle
    rows: Rows
    reader: RowRequestReader
    output: Output
    start: int
    stop: int | None

    @classmethod
    def plan(cls, command: RowsCommand, rows: Rows, settings: Settings) -> "Work":
        """Check the bundle, the parameters and the columns of the rows.

        Raises:
            CommandError, StartupError, FillMaskError: one of them is invalid.
        """
        task = rows_of(command.task)
        bundle = read_bundle(settings.bundle)
        check_bundle(task.task, bundle, pairs=command.text_pair_column is not None)
        limits = limits_of(settings, bundle)
        reader = RowRequestReader(task, command.text_fields, command.parameters, limits, rows)
        layout = task.layout(reader.defaults, row_parameters=rows.row_parameters)
        output = Output(layout, command.on_error == "report", command.output_prefix)
        start, stop = 0, None
        if rows.source.files:
            start, stop = command.shard.range_of(rows.count())
        return cls(command, settings, task, bundle, rows, reader, output, start, stop)

    @property
    def total(self) -> int | None:
        """Number of rows, if it is known."""
        return None if self.stop is None else self.stop - self.start

    def policy(self, write: Write, progress: Progress) -> ErrorPolicy:
        return ErrorPolicy(write, self.rows.name, self.command.on_error, progress)

    async def run(self, done: int, write: Write, progress: Progress) -> ErrorPolicy:
        """Load the model, write the answers after `done` rows, and return the policy.

        Raises:
            CommandError: a row is invalid, or `write` raises this error.
            StartupError: the model cannot be loaded.
            FillMaskError: a parameter is invalid, or the model has failed.
        """
        problems = self.policy(write, progress)
        async with aclosing(await load_model(self.settings, lambda _: None)) as model:
            model.pipeline(self.task.task).check(self.reader.defaults)
            batch_tokens = self.settings.threads * self.settings.max_batch_tokens
            pipeline = RowPipeline(self.task, model, self.command.field, batch_tokens)
            await pipeline.run(self.reader.read(self.start + done, self.stop), problems.write)
        return problems
