"""The file command, which processes the rows of a file and can continue after an interruption."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from fillmask.bundles.bundle import read_bundle
from fillmask.cli.commands import FileCommand
from fillmask.cli.error_policy import ErrorPolicy
from fillmask.cli.errors import CommandError, RowError
from fillmask.cli.formats.base import Block, OutputOptions, Rows, RowWriter
from fillmask.cli.formats.by_extension import format_to_write, make_writer, open_rows
from fillmask.cli.pipeline import RowPipeline
from fillmask.cli.progress import print_status, show_progress
from fillmask.cli.requests import RowRequestReader
from fillmask.cli.resume.job import DESCRIPTION, Job, fingerprint, locked, parts_directory
from fillmask.cli.resume.parts import PartFiles
from fillmask.cli.tasks import TASKS
from fillmask.cli.tasks.base import AnyTask, check_bundle
from fillmask.registry.limits import limits_of
from fillmask.registry.loader import load_model
from fillmask.settings import Settings


def check_output(path: Path, source: Path, inputs: Sequence[Path], *, overwrite: bool) -> None:
    """Reject an output path that the command must not write.

    The function allows an existing output with the description of a job, because an interrupted job
    may have written this output.

    Args:
        path: path of the output.
        source: path of the input.
        inputs: files of the input.
        overwrite: allow an existing output.

    Raises:
        CommandError: the output is the input, has no supported extension or already exists, its
            directory does not exist, or its directory of parts contains the input.
    """
    format_to_write(path)
    if not path.parent.is_dir():
        raise CommandError(f"The command cannot write {path}; {path.parent} must be a directory.")
    if path.exists() and any(path.samefile(file) for file in inputs):
        raise CommandError(f"{path} is the input file; choose another --output.")
    if path.parent.samefile(source if source.is_dir() else source.parent) and (
        source.is_dir() or (inputs != [source] and path.match(source.name))
    ):
        raise CommandError(f"The next run would read {path} as input; choose another --output.")
    if inputs[0].resolve().is_relative_to(parts_directory(path).resolve()):
        raise CommandError(
            f"The command replaces the files in {parts_directory(path)}, which contains the input; "
            "choose another --output."
        )
    if not (parts_directory(path) / DESCRIPTION).exists():
        check_new(path, overwrite=overwrite)


def check_new(path: Path, *, overwrite: bool) -> None:
    """Reject an existing output unless `overwrite` allows its replacement.

    Raises:
        CommandError: the output is a directory, or the output exists and `overwrite` is False.
    """
    if path.is_dir():
        raise CommandError(f"{path} is a directory; set --output to a file.")
    if path.exists() and not overwrite:
        raise CommandError(f"{path} already exists; use --overwrite to replace it.")


@dataclass(frozen=True, slots=True)
class _Plan:
    """Data that a file command needs besides the model.

    Attributes:
        start: index of the shard's first row.
        stop: index after the shard's last row.
        fingerprint: identity of the job.
    """

    task: AnyTask
    rows: Rows
    reader: RowRequestReader
    writer: RowWriter
    start: int
    stop: int
    fingerprint: Mapping[str, Any]


async def process_file(command: FileCommand, settings: Settings) -> None:
    """Process the rows of a file or continue an interrupted job.

    Raises:
        CommandError: the input, the output or a row is invalid, or the bundle lacks the task.
        RetryError: another process is writing the same output.
        StartupError: the bundle or a setting is invalid.
        FillMaskError: a parameter is invalid, or the model has failed.
    """
    options = command.row_options
    rows = await asyncio.to_thread(open_rows, command.input, options.field, options.dialect)
    check_output(command.output, command.input, rows.files, overwrite=command.overwrite)
    states = [*map(_file_state, rows.files)]
    plan = await asyncio.to_thread(_make_plan, command, rows, settings)
    with locked(command.output):
        job = Job(command.output, plan.fingerprint)
        if not job.begin(restart=command.restart):
            job.remove_directory()
            print_status(f"{command.output.name} is already complete.")
            return
        parts = PartFiles(job.directory, plan.start)
        try:
            check_new(command.output, overwrite=command.overwrite)
            if parts.next_row < plan.stop:
                await _process_rows(command, plan, parts, settings)
            problems = await asyncio.to_thread(_join_parts, command, plan, parts, job.joined)
        except BaseException as error:
            if saved := parts.next_row - plan.start:
                print_status(
                    f"{saved} of {plan.stop - plan.start} rows are saved; run the command again to "
                    "continue after them, or with --restart to start over."
                )
            else:
                job.remove_directory()
            if isinstance(error, RowError):
                raise RowError(
                    f"{error} With --on-error report, the command goes on after invalid rows."
                ) from error
            raise
        if [*map(_file_state, rows.files)] != states:
            raise CommandError(
                f"{command.input} has changed since the start of the command; start again with "
                "--restart."
            )
        check_new(command.output, overwrite=command.overwrite)  # the user may have written one
        job.publish()
        job.remove_directory()
    print_status(f"{command.output.name}: {problems}.")
    problems.check()


def _make_plan(command: FileCommand, rows: Rows, settings: Settings) -> _Plan:
    row_options = command.row_options
    task = TASKS[row_options.task]
    bundle = read_bundle(settings.bundle)
    check_bundle(task, bundle, pairs=row_options.text_pair_column is not None)
    limits = limits_of(settings, bundle)
    options = task.read_options(row_options.parameters, limits)
    report = row_options.on_error == "report"
    output = OutputOptions(task, options, report, row_options.output_prefix)
    writer = make_writer(command.output, rows, output)
    start, stop = row_options.shard.range_of(rows.count())
    return _Plan(
        task=task,
        rows=rows,
        reader=RowRequestReader(
            task, row_options.text_fields, row_options.parameters, limits, rows, ()
        ),
        writer=writer,
        start=start,
        stop=stop,
        fingerprint=fingerprint(rows.files, row_options, bundle),
    )


async def _process_rows(
    command: FileCommand, plan: _Plan, parts: PartFiles, settings: Settings
) -> None:
    """Process the rows that have no saved answers yet."""
    row_options = command.row_options
    if parts.next_row > plan.start:
        print_status(f"Continuing after row {parts.next_row} of {command.input.name}.")
    done, total = parts.next_row - plan.start, plan.stop - plan.start
    with show_progress(sys.stderr, command.output.name, total, done) as progress:

        def write(block: Block, answers: Sequence[bytes]) -> None:
            parts.write(block, answers)
            progress.update(len(block))

        async with aclosing(await load_model(settings, lambda _: None)) as model:
            plan.task.check_options(model, plan.reader.options)
            batch_tokens = settings.threads * settings.max_batch_tokens
            pipeline = RowPipeline(plan.task, model, row_options.field, batch_tokens)
            unanswered = plan.reader.read(parts.next_row, plan.stop)
            try:
                await pipeline.run(
                    unanswered, ErrorPolicy(write, plan.rows.name, row_options.on_error).write
                )
            finally:
                await asyncio.to_thread(parts.commit)


def _join_parts(command: FileCommand, plan: _Plan, parts: PartFiles, path: Path) -> ErrorPolicy:
    """Write all rows with their saved answers to a file and return the policy with its counts."""
    answers = parts.answers()
    total = plan.stop - plan.start
    label = f"writing {command.output.name}"
    with (
        show_progress(sys.stderr, label, total) as progress,
        plan.writer.open(path) as write,
    ):
        problems = ErrorPolicy(write, plan.rows.name, command.row_options.on_error)
        for block in plan.rows.blocks(plan.start, plan.stop):
            problems.write(block, list(islice(answers, len(block))))
            progress.update(len(block))
    return problems


def _file_state(path: Path) -> tuple[int, int]:
    """Return the size and modification time of a file, to detect changes."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns
