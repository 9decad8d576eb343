"""The command for the rows of a file or of standard input.

To a file, it can continue after an interruption. To standard output, it saves no results.
"""

import asyncio
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from fillmask.cli.commands import RowsCommand
from fillmask.cli.durable_files import STANDARD_OUTPUT, name_in_errors, write_file
from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import Block
from fillmask.cli.formats.by_extension import format_to_write, is_compressed, make_writer, open_rows
from fillmask.cli.formats.lines import JsonRowWriter
from fillmask.cli.formats.output import RowWriter
from fillmask.cli.job import Job, answers_file, fingerprint, locked
from fillmask.cli.progress import print_status, show_progress
from fillmask.cli.work import ErrorPolicy, Work
from fillmask.settings import Settings


def check_output(path: Path, source: Path, inputs: Sequence[Path], *, overwrite: bool) -> None:
    """Reject an output path that the command must not write.

    An existing output with a job is allowed, because an interrupted job may have written it.

    Raises:
        CommandError: the output is the input, has no supported extension or already exists, or its
            directory does not exist.
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
    if not answers_file(path).exists():
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


async def _save_answers(work: Work, job: Job, name: str) -> None:
    """Process the rows that have no saved answers yet."""
    done = job.rows
    if done:
        print_status(f"Continuing after row {work.start + done} of {work.rows.name}.")
    with show_progress(sys.stderr, name, work.total, done) as progress:
        try:
            await work.run(done, job.write, progress)
        finally:
            await asyncio.to_thread(job.save)


def _join_answers(work: Work, job: Job, writer: RowWriter, target: Path) -> ErrorPolicy:
    """Write all rows with their answers to a file, and return the policy with its counts."""
    answers = job.answers()
    with (
        show_progress(sys.stderr, f"writing {target.name}", work.total) as progress,
        write_file(job.joined, compressed=is_compressed(target)) as stream,
        writer.write_to(stream) as write,
    ):
        problems = work.policy(write, progress)
        for block in work.rows.blocks(work.start, work.stop):
            problems.write(block, list(islice(answers, len(block))))
    return problems


async def process_file(
    command: RowsCommand, source: Path, target: Path, settings: Settings
) -> None:
    """Process the rows of a file or continue an interrupted job.

    Raises:
        CommandError: the output is invalid or another job has it, or see `Work`.
        StartupError, FillMaskError: see `Work`.
    """
    rows = await asyncio.to_thread(open_rows, source, command.field, command.dialect)
    check_output(target, source, rows.source.files, overwrite=command.overwrite)
    states = [*map(_file_state, rows.source.files)]
    work = await asyncio.to_thread(Work, command, rows, settings)
    writer = await asyncio.to_thread(make_writer, target, rows, work.output)
    identity = await asyncio.to_thread(fingerprint, rows.source.files, command, work.bundle)
    with locked(target):
        job = await asyncio.to_thread(Job, target, identity, restart=command.restart)
        if job.is_published:
            job.remove()
            print_status(f"{target.name} is already complete.")
            return
        try:
            check_new(target, overwrite=command.overwrite)
            if job.rows != work.total:
                await _save_answers(work, job, target.name)
            problems = await asyncio.to_thread(_join_answers, work, job, writer, target)
        except BaseException:
            if job.rows:
                print_status(
                    f"{job.rows} of {work.total} rows are saved; run the command again to "
                    "continue after them, or with --restart to start over."
                )
            else:
                job.remove()
            raise
        if [*map(_file_state, rows.source.files)] != states:
            raise CommandError(
                f"{source} has changed since the start of the command; start again with --restart."
            )
        check_new(target, overwrite=command.overwrite)  # the user may have written one
        job.publish()
        job.remove()
    print_status(f"{target.name}: {problems}.")
    problems.check()


async def process_stream(command: RowsCommand, settings: Settings) -> None:
    """Process the rows of the input, and write them to standard output while later ones run.

    Raises:
        CommandError, StartupError, FillMaskError: see `Work`.
    """
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


def _file_state(path: Path) -> tuple[int, int]:
    """Return the size and modification time of a file, to detect changes."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns
