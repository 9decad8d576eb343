"""The text command, which processes one text and prints a table or JSON."""

import sys
from contextlib import aclosing

from service.cli.commands import TextCommand
from service.cli.errors import CommandError
from service.cli.formats.base import is_encodable
from service.cli.formats.durable_files import STANDARD_OUTPUT, name_in_errors
from service.cli.requests import limits_of, without_limits
from service.cli.tasks import TASKS
from service.cli.tasks.base import check_bundle
from service.cli.terminal.style import Style
from service.registry.loader import load_model
from service.settings import Settings
from service.tokenization.encoded_text import InputText, TextPair

_LABEL = "The text"


async def process_text(command: TextCommand, settings: Settings) -> None:
    """Process a text or a pair and print the result.

    Raises:
        CommandError: a text is empty or not valid UTF-8, the bundle lacks the task, or the model
            cannot read the pair.
        StartupError: the bundle or a setting is invalid.
        FillMaskError: the text or a parameter is invalid, or the model has failed.
    """
    text = _input_text(command)
    task = TASKS[command.task]
    async with aclosing(await load_model(without_limits(settings), lambda _: None)) as model:
        bundle = model.bundle
        check_bundle(task, bundle, pairs=command.text_pair is not None)
        options = task.read_options(command.parameters, limits_of(bundle))
        result = await task.run(model, text, options, _LABEL)
    with name_in_errors(STANDARD_OUTPUT):
        if command.as_json:
            sys.stdout.buffer.write(task.response(result) + b"\n")
            return
        lines = task.table(bundle, text, options, result, Style.of(sys.stdout))
        sys.stdout.writelines(f"{line}\n" for line in lines)


def _input_text(command: TextCommand) -> InputText:
    _check_text(command.text, _LABEL)
    if command.text_pair is None:
        return command.text
    _check_text(command.text_pair, "--text-pair")
    return TextPair(command.text, command.text_pair)


def _check_text(text: str, label: str) -> None:
    if not text:
        raise CommandError(f"{label} is empty; write at least one word.")
    if not is_encodable(text):
        raise CommandError(f"{label} is not valid UTF-8; encode it as UTF-8.")
