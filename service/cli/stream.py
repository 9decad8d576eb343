"""Rows that are written as they are answered: JSONL on standard output. Nothing is kept."""

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, aclosing
from pathlib import Path

from service.bundles.bundle import read_bundle
from service.cli.formats.base import Block, OutputOptions, Rows
from service.cli.formats.durable_files import STANDARD_OUTPUT, naming
from service.cli.formats.jsonl import JsonOutput, JsonRows, write_lines
from service.cli.formats.lines import Stream
from service.cli.formats.open import check_input, open_rows
from service.cli.pipeline import RowPipeline
from service.cli.problems import ErrorPolicy
from service.cli.progress import print_status, show_progress
from service.cli.requests import RowRequestReader, limits_of, read_options, without_limits
from service.cli.row_options import StreamTask
from service.registry.loader import load_model
from service.settings import Settings

_STANDARD_INPUT = 0


async def fill_stream(task: StreamTask, settings: Settings) -> None:
    """Write all rows with their fills.

    Args:
        task: which.
        settings: of the model.

    Raises:
        CommandError: what was asked for cannot be done, or a row cannot be filled.
        StartupError: the bundle is no good.
        FillMaskError: the parameters are wrong, or the model has failed.
    """
    filling = task.filling
    rows = await asyncio.to_thread(_open, task.input, filling.field)
    bundle = await asyncio.to_thread(read_bundle, settings.bundle)
    limits = limits_of(bundle)
    options = read_options(filling.parameters, limits)
    output = JsonOutput(rows, OutputOptions(options, filling.on_error == "report"))
    questions = RowRequestReader(filling.field, filling.parameters, limits, rows, output.reserved)
    start, stop = 0, None
    if task.input is not None:
        start, stop = filling.shard.range_of(await asyncio.to_thread(rows.count))
    total = None if stop is None else stop - start
    bar = not sys.stdout.isatty()
    with show_progress(sys.stderr, rows.name, total, bar=bar) as progress:
        write_to_output = write_lines(sys.stdout.buffer)

        def write(block: Block, answers: Sequence[bytes]) -> None:
            with naming(STANDARD_OUTPUT):
                write_to_output(block, answers)
            progress.update(len(block))

        problems = ErrorPolicy(write, rows.name, filling.on_error)
        async with aclosing(await load_model(without_limits(settings), lambda _: None)) as model:
            model.fill_mask.check_targets(options)
            batch_tokens = settings.threads * settings.max_batch_tokens
            flow = RowPipeline(model.fill_mask, filling.field, bundle.mask_token, batch_tokens)
            await flow.run(questions.asked(start, stop), problems.write)
    print_status(f"{rows.name}: {problems}.")


def _open(path: Path | None, field: str) -> Rows:
    if path is None:
        return JsonRows("standard input", _open_standard_input)
    check_input(path)
    return open_rows(path, field)


def _open_standard_input() -> AbstractContextManager[Stream]:
    os.set_blocking(_STANDARD_INPUT, True)  # whoever started us may have left it otherwise
    return open(_STANDARD_INPUT, "rb", buffering=0, closefd=False)
