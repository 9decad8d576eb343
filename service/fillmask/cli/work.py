"""What a command does with the rows of a file or a stream, wherever it writes them."""

from collections.abc import Iterator, Sequence
from contextlib import aclosing

from fillmask.bundles.bundle import read_bundle
from fillmask.cli.commands import RowsCommand
from fillmask.cli.errors import CommandError, RowError
from fillmask.cli.formats.base import Block, Row, Rows, row_label
from fillmask.cli.formats.output import Output, Write, problem_of
from fillmask.cli.pipeline import Item, RequestBlock, RowPipeline
from fillmask.cli.progress import Progress
from fillmask.cli.tasks import check_bundle, rows_of
from fillmask.errors import InvalidRequestError
from fillmask.models.limits import limits_of
from fillmask.models.loader import load_model
from fillmask.parameters.validation import PARAMETERS
from fillmask.parameters.values import merge_parameters
from fillmask.settings import Settings
from fillmask.tasks.pipeline import Inputs

_REPORT = " With --on-error report, the command goes on after invalid rows."


class ErrorPolicy:
    """Wrapper of a writer that applies the policy for invalid rows, and shows the progress.

    With "error", it writes the answers before the first problem and then raises an error. With
    "report", it writes problems like other answers.
    """

    def __init__(self, write: Write, name: str, command: RowsCommand, progress: Progress) -> None:
        self._write = write
        self._name = name  # of the input
        self._reports = command.on_error == "report"
        self._advice = "" if command.output is None else _REPORT
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
            if not self._reports:
                if place:
                    self._write(block.slice(0, place), answers[:place])
                label = row_label(self._name, block.first + place)
                raise RowError(f"{label}: {problem}{self._advice}")
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


class Work:
    """The rows of a command with all that their answers need besides the model.

    A row's own `parameters` field overrides the parameters of the command.

    Attributes:
        start: index of the first row.
        stop: index after the last row. None means the unknown end.

    Raises:
        CommandError, StartupError, FillMaskError: the bundle, a parameter or the columns of the
            rows are invalid.
    """

    def __init__(self, command: RowsCommand, rows: Rows, settings: Settings) -> None:
        self.rows = rows
        self.bundle = read_bundle(settings.bundle)
        self._command = command
        self._settings = settings
        self._task = rows_of(command.task)
        check_bundle(self._task.task, self.bundle, pairs=command.text_pair_column is not None)
        self._limits = limits_of(settings, self.bundle)
        self._defaults = self._task.read_parameters(command.parameters, self._limits)
        command.check_columns(rows)
        layout = self._task.layout(self._defaults, row_parameters=rows.row_parameters)
        self.output = Output(layout, command.on_error == "report", command.output_prefix)
        self.start, self.stop = 0, None
        if rows.source.files:
            self.start, self.stop = command.shard.range_of(rows.count())

    @property
    def total(self) -> int | None:
        """Number of rows, if it is known."""
        return None if self.stop is None else self.stop - self.start

    def policy(self, write: Write, progress: Progress) -> ErrorPolicy:
        return ErrorPolicy(write, self.rows.name, self._command, progress)

    def requests(self, done: int = 0) -> Iterator[RequestBlock]:
        """Read the requests of the rows after the first `done` ones.

        Raises:
            CommandError: the file is damaged.
        """
        own = PARAMETERS if self.rows.row_parameters else None
        names = (self._command.field, self._command.pair_field, own)
        needed = [name for name in names if name is not None]
        for block in self.rows.blocks(self.start + done, self.stop, needed):
            yield block, [self._request(row) for row in block.rows()]

    def _request(self, row: Row) -> Item:
        if row.problem is not None:
            return row.problem
        own = row.fields.get(PARAMETERS) if self.rows.row_parameters else None
        if isinstance(own, dict):
            own = merge_parameters(self._command.parameters, own)
        try:
            text = self._command.read_text(row.fields)
            parameters = self._defaults
            if own is not None:
                parameters = self._task.read_parameters(own, self._limits)
        except InvalidRequestError as error:
            return error.text
        return Inputs([text], [parameters], self._command.field)

    async def run(self, done: int, write: Write, progress: Progress) -> ErrorPolicy:
        """Load the model, write the answers after `done` rows, and return the policy.

        Raises:
            CommandError: a row is invalid, or `write` raises this error.
            StartupError: the model cannot be loaded.
            FillMaskError: a parameter is invalid, or the model has failed.
        """
        problems = self.policy(write, progress)
        async with aclosing(await load_model(self._settings, lambda _: None)) as model:
            model.pipeline(self._task.task).check(self._defaults)
            batch_tokens = self._settings.threads * self._settings.max_batch_tokens
            pipeline = RowPipeline(self._task, model, batch_tokens)
            await pipeline.run(self.requests(done), problems.write)
        return problems
