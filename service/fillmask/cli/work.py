"""What a command does with the rows of a file or a stream, wherever it writes them."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass

from fillmask.bundles.bundle import Bundle, read_bundle
from fillmask.cli.commands import RowsCommand
from fillmask.cli.error_policy import ErrorPolicy
from fillmask.cli.formats.base import Rows
from fillmask.cli.formats.output import Output, Write
from fillmask.cli.pipeline import RowPipeline
from fillmask.cli.requests import RowRequestReader
from fillmask.cli.tasks import rows_of
from fillmask.cli.tasks.base import TaskRows, check_bundle
from fillmask.models.limits import limits_of
from fillmask.models.loader import load_model
from fillmask.settings import Settings


@dataclass(frozen=True, slots=True)
class Work:
    """The rows of a command, with all that their answers need besides the model."""

    command: RowsCommand
    settings: Settings
    task: TaskRows
    bundle: Bundle
    rows: Rows
    reader: RowRequestReader
    output: Output

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
        return cls(command, settings, task, bundle, rows, reader, output)

    def policy(self, write: Write) -> ErrorPolicy:
        return ErrorPolicy(write, self.rows.name, self.command.on_error)

    async def run(self, start: int, stop: int | None, write: Write) -> ErrorPolicy:
        """Load the model, write the answers of rows, and return the policy with its counts.

        Raises:
            CommandError: a row is invalid, or `write` raises this error.
            StartupError: the model cannot be loaded.
            FillMaskError: a parameter is invalid, or the model has failed.
        """
        problems = self.policy(write)
        async with aclosing(await load_model(self.settings, lambda _: None)) as model:
            model.pipeline(self.task.task).check(self.reader.defaults)
            batch_tokens = self.settings.threads * self.settings.max_batch_tokens
            pipeline = RowPipeline(self.task, model, self.command.field, batch_tokens)
            await pipeline.run(self.reader.read(start, stop), problems.write)
        return problems

    async def range(self) -> tuple[int, int]:
        return self.command.shard.range_of(await asyncio.to_thread(self.rows.count))
