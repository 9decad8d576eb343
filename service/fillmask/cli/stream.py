"""The stream command, which writes rows to standard output while it processes later rows.

The command saves no results. Therefore, an interrupted stream cannot continue.
"""

import asyncio
import io
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, aclosing
from pathlib import Path

from fillmask.bundles.bundle import read_bundle
from fillmask.cli.commands import RowOptions, StreamCommand
from fillmask.cli.error_policy import ErrorPolicy
from fillmask.cli.formats.base import Block, OutputOptions, Rows
from fillmask.cli.formats.by_extension import open_rows
from fillmask.cli.formats.durable_files import STANDARD_OUTPUT, name_in_errors
from fillmask.cli.formats.jsonl import JsonRows, JsonRowWriter
from fillmask.cli.pipeline import RowPipeline
from fillmask.cli.progress import print_status, show_progress
from fillmask.cli.requests import RowRequestReader
from fillmask.cli.tasks import TASKS
from fillmask.cli.tasks.base import check_bundle
from fillmask.registry.limits import limits_of
from fillmask.registry.loader import load_model
from fillmask.settings import Settings

STANDARD_INPUT = "standard input"  # in error messages
_DESCRIPTOR = 0


async def process_stream(command: StreamCommand, settings: Settings) -> None:
    """Process the rows of the input and write them to standard output.

    Raises:
        CommandError: the input or a row is invalid, or the bundle lacks the task.
        StartupError: the bundle or a setting is invalid.
        FillMaskError: a parameter is invalid, or the model has failed.
    """
    row_options = command.row_options
    task = TASKS[row_options.task]
    rows = await asyncio.to_thread(_open, command.input, row_options)
    bundle = await asyncio.to_thread(read_bundle, settings.bundle)
    check_bundle(task, bundle, pairs=row_options.text_pair_column is not None)
    limits = limits_of(settings, bundle)
    options = task.read_options(row_options.parameters, limits)
    report = row_options.on_error == "report"
    output = OutputOptions(task, options, report, row_options.output_prefix)
    writer = await asyncio.to_thread(JsonRowWriter, rows, output)
    reader = RowRequestReader(
        task, row_options.text_fields, row_options.parameters, limits, rows, writer.reserved
    )
    start, stop = 0, None
    if command.input is not None:
        start, stop = row_options.shard.range_of(await asyncio.to_thread(rows.count))
    total = None if stop is None else stop - start
    bar = not sys.stdout.isatty()
    with show_progress(sys.stderr, rows.name, total, bar=bar) as progress:
        write_to_stdout = writer.write_to(sys.stdout.buffer)

        def write(block: Block, answers: Sequence[bytes]) -> None:
            with name_in_errors(STANDARD_OUTPUT):
                write_to_stdout(block, answers)
                sys.stdout.buffer.flush()
            progress.update(len(block))

        problems = ErrorPolicy(write, rows.name, row_options.on_error)
        async with aclosing(await load_model(settings, lambda _: None)) as model:
            task.check_options(model, options)
            batch_tokens = settings.threads * settings.max_batch_tokens
            pipeline = RowPipeline(task, model, row_options.field, batch_tokens)
            await pipeline.run(reader.read(start, stop), problems.write)
    print_status(f"{rows.name}: {problems}.")
    problems.check()


def _open(path: Path | None, row_options: RowOptions) -> Rows:
    if path is not None:
        return open_rows(path, row_options.field, row_options.dialect)
    rows = JsonRows(STANDARD_INPUT, open_standard_input)
    rows.rereadable = False
    return rows


def open_standard_input() -> AbstractContextManager[io.RawIOBase]:
    """Open standard input for reading without a buffer."""
    # the parent process may have made standard input non-blocking
    os.set_blocking(_DESCRIPTOR, True)
    return open(_DESCRIPTOR, "rb", buffering=0, closefd=False)
