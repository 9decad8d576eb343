"""A whole file, read and written in parts."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from service.bundles.bundle import read_bundle
from service.cli.errors import CommandError, RowError
from service.cli.formats.base import Block, OutputOptions, Rows, RowWriter
from service.cli.formats.open import (
    WRITTEN,
    check_ending,
    check_input,
    make_output,
    open_rows,
)
from service.cli.pipeline import RowPipeline
from service.cli.problems import ErrorPolicy
from service.cli.progress import print_status, show_progress
from service.cli.requests import RowRequestReader, limits_of, read_options, without_limits
from service.cli.resume.job import Job, fingerprint, locked, parts_directory
from service.cli.resume.parts import PartFiles
from service.cli.row_options import FileTask
from service.registry.loader import load_model
from service.settings import Settings


def check_output(path: Path, source: Path, *, overwrite: bool) -> None:
    """Refuse an output that is not to be written.

    Args:
        path: of the output.
        source: the input.
        overwrite: whether an output that is there may be replaced.

    Raises:
        CommandError: it is the input, of no format that is written, or there already, and no job
            that has begun may have put it there; or its directory is not there.
    """
    check_ending(path, WRITTEN)
    if not path.parent.is_dir():
        raise CommandError(f"{path} cannot be written: {path.parent} is no directory.")
    if path.exists() and path.samefile(source):
        raise CommandError(f"{path} is the input, which is not replaced.")
    if not parts_directory(path).exists():
        check_new(path, overwrite=overwrite)


def check_new(path: Path, *, overwrite: bool) -> None:
    """Refuse to replace an output.

    Raises:
        CommandError: it is there, and may not be replaced.
    """
    if path.is_dir():
        raise CommandError(f"{path} is a directory.")
    if path.exists() and not overwrite:
        raise CommandError(f"{path} is there already; --overwrite replaces it.")


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be done.

    Attributes:
        rows: those of the input.
        questions: what is asked of them.
        output: what they are written as.
        start: number of the first row of the shard.
        stop: number of the one after its last.
        fingerprint: what makes this job and no other.
        mask_token: the model's.
    """

    rows: Rows
    questions: RowRequestReader
    output: RowWriter
    start: int
    stop: int
    fingerprint: Mapping[str, Any]
    mask_token: str


async def fill_file(task: FileTask, settings: Settings) -> None:
    """Write the output.

    Args:
        task: which, and of what.
        settings: of the model.

    Raises:
        CommandError: what was asked for cannot be done, or a row cannot be filled.
        StartupError: the bundle is no good.
        FillMaskError: the parameters are wrong, or the model has failed.
    """
    check_input(task.input)
    check_output(task.output, task.input, overwrite=task.overwrite)
    state = _state(task.input)
    plan = await asyncio.to_thread(_make_plan, task, settings)
    with locked(task.output):
        job = Job(task.output, plan.fingerprint)
        if not job.begin(restart=task.restart):
            job.end()
            print_status(f"{task.output.name} was finished before.")
            return
        check_new(task.output, overwrite=task.overwrite)
        parts = PartFiles(job.directory, plan.start)
        try:
            if parts.next_row < plan.stop:
                await _fill(task, plan, parts, settings)
            problems = await asyncio.to_thread(_join, task, plan, parts, job.joined)
        except asyncio.CancelledError:
            done, rows = parts.next_row - plan.start, plan.stop - plan.start
            print_status(
                f"Stopped with {done} of {rows} rows done; the same command goes on from there."
            )
            raise
        except RowError as error:
            raise RowError(
                f"{error} What is done before it is kept, and the same command with --on-error "
                "report goes on past it."
            ) from error
        if _state(task.input) != state:
            raise CommandError(
                f"{task.input} was changed while it was read; start anew with --restart."
            )
        job.deliver()
        job.end()
    print_status(f"{task.output.name}: {problems}.")


def _make_plan(task: FileTask, settings: Settings) -> _Plan:
    filling = task.filling
    bundle = read_bundle(settings.bundle)
    rows = open_rows(task.input, filling.field)
    limits = limits_of(bundle)
    options = read_options(filling.parameters, limits)
    output = make_output(task.output, rows, OutputOptions(options, filling.on_error == "report"))
    start, stop = filling.shard.range_of(rows.count())
    return _Plan(
        rows=rows,
        questions=RowRequestReader(
            filling.field, filling.parameters, limits, rows, output.reserved
        ),
        output=output,
        start=start,
        stop=stop,
        fingerprint=fingerprint(
            task.input, filling.field, filling.parameters, bundle, filling.shard
        ),
        mask_token=bundle.mask_token,
    )


async def _fill(task: FileTask, plan: _Plan, parts: PartFiles, settings: Settings) -> None:
    """Answer the rows that have no answer yet."""
    filling = task.filling
    if parts.next_row > plan.start:
        print_status(f"Going on after row {parts.next_row} of {task.input.name}.")
    done, total = parts.next_row - plan.start, plan.stop - plan.start
    with show_progress(sys.stderr, task.output.name, total, done) as progress:

        def write(block: Block, answers: Sequence[bytes]) -> None:
            parts.write(block, answers)
            progress.update(len(block))

        async with aclosing(await load_model(without_limits(settings), lambda _: None)) as model:
            model.fill_mask.check_targets(plan.questions.options)
            batch_tokens = settings.threads * settings.max_batch_tokens
            flow = RowPipeline(model.fill_mask, filling.field, plan.mask_token, batch_tokens)
            unanswered = plan.questions.asked(parts.next_row, plan.stop)
            try:
                await flow.run(
                    unanswered, ErrorPolicy(write, plan.rows.name, filling.on_error).write
                )
            finally:
                await asyncio.to_thread(parts.commit)


def _join(task: FileTask, plan: _Plan, parts: PartFiles, path: Path) -> ErrorPolicy:
    """Write all rows with their answers; gives what there is to say of them."""
    answers = parts.answers()
    total = plan.stop - plan.start
    label = f"writing {task.output.name}"
    with (
        show_progress(sys.stderr, label, total) as progress,
        plan.output.writing(path) as write,
    ):
        problems = ErrorPolicy(write, plan.rows.name, task.filling.on_error)
        for block in plan.rows.blocks(plan.start, plan.stop):
            problems.write(block, list(islice(answers, len(block))))
            progress.update(len(block))
    return problems


def _state(path: Path) -> tuple[int, int]:
    """By which a change of a file shows."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns
