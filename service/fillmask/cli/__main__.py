"""Entry point of the fillmask command."""

import io
import os
import sys
import traceback
from collections.abc import Sequence

from fillmask.cli.arguments import parse_arguments
from fillmask.cli.commands import Command, TextCommand
from fillmask.cli.durable_files import STANDARD_OUTPUT, name_in_errors
from fillmask.cli.errors import CommandError, reason
from fillmask.cli.files import process_file, process_stream
from fillmask.cli.one_text import process_text
from fillmask.cli.signals import SignalError, run_until_signal
from fillmask.errors import FillMaskError, InvalidRequestError, StartupError
from fillmask.models.limits import without_limits
from fillmask.settings import Settings, read_settings
from fillmask.tables.streams import TableError

_FAILED, _INVALID = 1, 2
_ERRORS = (SignalError, CommandError, TableError, StartupError, FillMaskError, OSError)


def main() -> None:
    """Run the command line of this process and exit.

    The exit code is 0 on success. After an error, the exit code is 1 if a retry may succeed and 2
    otherwise. After a signal, the exit code is 128 plus the number of the signal.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # characters that the terminal cannot encode become escapes instead of an error
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = execute(sys.argv[1:])
    except Exception:  # noqa: BLE001 - the process must exit after any error
        traceback.print_exc()
        code = _FAILED
    sys.stderr.flush()
    # sys.exit waits for threads, one of which may be blocked on standard input
    os._exit(code)


def execute(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code."""
    if sys.stdout is None:
        print("Standard output is closed; redirect it, for example to /dev/null.", file=sys.stderr)
        return _INVALID
    try:
        parsed = parse_arguments(arguments)
        settings = without_limits(read_settings(parsed.settings))
        run_until_signal(lambda: _run(parsed.command, settings))
        with name_in_errors(STANDARD_OUTPUT):
            sys.stdout.flush()
    except _ERRORS as error:
        code, message = _exit_code_and_message(error)
        if message:
            print(message, file=sys.stderr)
        return code
    return 0


def _exit_code_and_message(error: Exception) -> tuple[int, str]:
    match error:
        case SignalError():
            return 128 + error.number, ""
        case BrokenPipeError():
            return _FAILED, ""  # the reader of the pipe, such as `head`, has ended
        case CommandError():
            return error.exit_code, str(error)
        case StartupError() | InvalidRequestError() | TableError():
            return _INVALID, str(error)
        case OSError():
            file = f"{error.filename}: " if error.filename else ""
            return _FAILED, f"{file}{reason(error)}."
        case _:
            return _FAILED, str(error)


async def _run(command: Command, settings: Settings) -> None:
    if isinstance(command, TextCommand):
        await process_text(command, settings)
    elif command.input is not None and command.output is not None:
        await process_file(command, command.input, command.output, settings)
    else:
        await process_stream(command, settings)


if __name__ == "__main__":
    main()
