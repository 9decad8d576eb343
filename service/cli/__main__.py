"""fillmask: fill a text or a file, without a server."""

import io
import os
import sys
import traceback
from collections.abc import Sequence

from service.cli.arguments import read_arguments
from service.cli.errors import CommandError, reason
from service.cli.formats.durable_files import STANDARD_OUTPUT, naming
from service.cli.one_text import fill_text
from service.cli.row_options import FileTask, StreamTask, Task
from service.cli.signals import SignalError, run_until_signal
from service.cli.stream import fill_stream
from service.cli.whole_file import fill_file
from service.errors import FillMaskError, InvalidRequestError, StartupError
from service.settings import Settings, read_settings

_FAILED, _REFUSED = 1, 2


def main() -> None:
    """Do what was typed, and end the process.

    The exit code is 0, or 1 when it failed and may not the next time, 2 when it would fail again,
    128 and the signal's number after a signal.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # what the terminal's encoding lacks is written as an escape, and not a traceback
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = execute(sys.argv[1:])
    except Exception:  # noqa: BLE001 - whatever it is, the process is to end
        traceback.print_exc()
        code = _FAILED
    sys.stderr.flush()
    # not sys.exit: a thread may still wait for standard input, and nobody should wait for it
    os._exit(code)


def execute(arguments: Sequence[str]) -> int:
    """Do what was typed; gives the exit code."""
    try:
        typed = read_arguments(arguments)
        settings = read_settings(typed.settings)
        run_until_signal(lambda: _do(typed.task, settings))
        with naming(STANDARD_OUTPUT):
            sys.stdout.flush()
    except (SignalError, CommandError, StartupError, FillMaskError, OSError) as error:
        code, sentence = _end(error)
        if sentence:
            print(sentence, file=sys.stderr)
        return code
    return 0


def _end(error: Exception) -> tuple[int, str]:
    """The exit code, and what there is to say."""
    code, sentence = _FAILED, str(error)
    match error:
        case SignalError():
            code, sentence = 128 + error.number, ""
        case BrokenPipeError():
            sentence = ""  # who reads has had enough
        case CommandError():
            code = error.exit_code
        case StartupError() | InvalidRequestError():
            code = _REFUSED
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            sentence = f"{where}{reason(error)}."
        case _:
            pass
    return code, sentence


async def _do(task: Task, settings: Settings) -> None:
    match task:
        case FileTask():
            await fill_file(task, settings)
        case StreamTask():
            await fill_stream(task, settings)
        case _:
            await fill_text(task, settings)


if __name__ == "__main__":
    main()
