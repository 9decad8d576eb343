"""The stream command, which writes rows to standard output while it processes later rows.

The command saves no results. Therefore, an interrupted stream cannot continue.
"""

import asyncio
import io
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager

from fillmask.cli.commands import RowsCommand
from fillmask.cli.formats.base import Block, Rows, Source
from fillmask.cli.formats.by_extension import open_rows
from fillmask.cli.formats.durable_files import STANDARD_OUTPUT, name_in_errors
from fillmask.cli.formats.lines import JsonRows, JsonRowWriter
from fillmask.cli.progress import print_status, show_progress
from fillmask.cli.work import Work
from fillmask.settings import Settings

STANDARD_INPUT = "standard input"  # in error messages
_DESCRIPTOR = 0


async def process_stream(command: RowsCommand, settings: Settings) -> None:
    """Process the rows of the input and write them to standard output.

    Raises:
        CommandError, StartupError, FillMaskError: see `Work`.
    """
    if command.input is None:
        rows: Rows = JsonRows(Source(STANDARD_INPUT, open_standard_input, command.field))
    else:
        rows = await asyncio.to_thread(open_rows, command.input, command.field, command.dialect)
    work = await asyncio.to_thread(Work, command, rows, settings)
    writer = await asyncio.to_thread(JsonRowWriter, rows, work.output)
    bar = not sys.stdout.isatty()
    with (
        show_progress(sys.stderr, rows.name, work.total, bar=bar) as progress,
        writer.write_to(sys.stdout.buffer) as write_to_stdout,
    ):

        def write(block: Block, answers: Sequence[bytes]) -> None:
            with name_in_errors(STANDARD_OUTPUT):
                write_to_stdout(block, answers)
                sys.stdout.buffer.flush()

        problems = await work.run(0, write, progress)
    print_status(f"{rows.name}: {problems}.")
    problems.check()


def open_standard_input() -> AbstractContextManager[io.RawIOBase]:
    """Open standard input for reading without a buffer."""
    # the parent process may have made standard input non-blocking
    os.set_blocking(_DESCRIPTOR, True)
    return open(_DESCRIPTOR, "rb", buffering=0, closefd=False)
