"""The text command, which processes one text or each line of standard input."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from fillmask.cli.commands import DEFAULT_FIELD, TextCommand
from fillmask.cli.durable_files import STANDARD_OUTPUT, name_in_errors
from fillmask.cli.errors import CommandError, RowError
from fillmask.cli.formats.base import STANDARD_INPUT, is_encodable, row_label, standard_input
from fillmask.cli.formats.lines import TextRows
from fillmask.cli.tasks import Done, check_bundle, rows_of
from fillmask.cli.terminal import Style
from fillmask.errors import InvalidRequestError, quote
from fillmask.models.limits import limits_of
from fillmask.models.loader import load_model
from fillmask.parameters.texts import TextPair
from fillmask.settings import Settings

_LABEL = "The text"


async def process_text(command: TextCommand, settings: Settings) -> None:
    """Process a text or a pair, or each line of standard input, and print the results.

    Raises:
        CommandError: the command has no input, a text is empty or not valid UTF-8, the bundle lacks
            the task, or the model cannot read the pair.
        StartupError: the bundle or a setting is invalid.
        FillMaskError: the text or a parameter is invalid, or the model has failed.
    """
    if command.text is not None:
        _check_text(command.text, _LABEL)
    elif sys.stdin is None or sys.stdin.isatty():
        raise CommandError(
            "The command has no input; give a text, pipe texts to the command, or set --input and "
            "--output (fillmask --help has examples)."
        )
    if command.text_pair is not None:
        _check_text(command.text_pair, "--text-pair")
    rows = rows_of(command.task)
    async with aclosing(await load_model(settings, lambda _: None)) as model:
        bundle = model.bundle
        check_bundle(rows.task, bundle, pairs=command.text_pair is not None)
        pipeline = model.pipeline(rows.task)
        parameters = rows.read_parameters(command.parameters, limits_of(settings, bundle))

        async def process(text: str, number: int) -> None:
            given = text if command.text_pair is None else TextPair(text, command.text_pair)
            [result] = await pipeline.compute([given], [parameters], _LABEL)
            with name_in_errors(STANDARD_OUTPUT):
                if command.as_json:
                    response = rows.task.response([result], single=True)
                    sys.stdout.buffer.write(response + b"\n")
                else:
                    done = Done(bundle, given, parameters, result)
                    table = rows.table(done, Style.of(sys.stdout))
                    lines = ["", *table] if number else table
                    sys.stdout.writelines(f"{line}\n" for line in lines)
                sys.stdout.flush()

        if command.text is None:
            await _process_standard_input(process)
            return
        try:
            await process(command.text, 0)
        except InvalidRequestError as error:
            if _is_file(command.text):
                raise CommandError(
                    f"{error} {quote(command.text)} is a file; to read its texts, set --input to "
                    "it and --output to the file to write."
                ) from error
            raise


def _is_file(text: str) -> bool:
    return os.path.isfile(text)  # noqa: PTH113 - Path.is_file fails for long texts


async def _process_standard_input(process: Callable[[str, int], Awaitable[None]]) -> None:
    """Process each line of standard input when it arrives, given its index from 0.

    Raises:
        RowError: a line is invalid.
        CommandError: standard input has no text.
    """
    blocks = TextRows(standard_input(DEFAULT_FIELD)).blocks()
    loop = asyncio.get_running_loop()
    number = -1
    while block := await loop.run_in_executor(None, next, blocks, None):
        for number, row in enumerate(block.rows(), block.first):
            text = row.fields.get(DEFAULT_FIELD, "")
            try:
                _check_text(text, _LABEL, row.problem)
                await process(text, number)
            except (CommandError, InvalidRequestError) as error:
                raise RowError(f"{row_label(STANDARD_INPUT, number)}: {error}") from error
    if number < 0:
        raise CommandError("Standard input has no text; write one text per line.")


def _check_text(text: str, label: str, problem: str | None = None) -> None:
    if problem is not None:
        raise CommandError(problem)
    if not text:
        raise CommandError(f"{label} is empty; write at least one word.")
    if not is_encodable(text):
        raise CommandError(f"{label} is not valid UTF-8; encode it as UTF-8.")
