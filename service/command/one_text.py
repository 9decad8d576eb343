"""One text: its fills on standard output."""

import sys

from service.api.fill_response import answer_json
from service.command.disk import STANDARD_OUTPUT, naming
from service.command.errors import CommandError
from service.command.limits import limits_of, without_limits
from service.command.printed import Style, table
from service.command.questions import read_options
from service.command.rows import is_text
from service.command.tasks import TextTask
from service.registry.loader import load
from service.settings import Settings

_CALLED = "The text"


async def fill_text(task: TextTask, settings: Settings) -> None:
    """Print the fills of each mask.

    Args:
        task: the text.
        settings: of the model.

    Raises:
        CommandError: the text is none.
        StartError: the bundle is no good.
        FillMaskError: the text cannot be filled.
    """
    if not task.text:
        raise CommandError(f"{_CALLED} is empty.")
    if not is_text(task.text):
        raise CommandError(f"{_CALLED} is not valid UTF-8.")
    async with load(without_limits(settings), lambda _: None) as model:
        options = read_options(task.parameters, limits_of(model.bundle))
        answer = await model.fill_mask.fill([task.text], options, _CALLED)
    with naming(STANDARD_OUTPUT):
        if task.as_json:
            sys.stdout.buffer.write(answer_json(answer, single=True) + b"\n")
            return
        [masks] = answer.fills
        lines = table(task.text, masks, Style.of(sys.stdout))
        sys.stdout.writelines(f"{line}\n" for line in lines)
