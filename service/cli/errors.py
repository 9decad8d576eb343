"""What ends the command, as an exit code and a sentence for the person who started it."""

from typing import ClassVar


class CommandError(Exception):
    """What was asked for cannot be done: to ask again would not help.

    Attributes:
        exit_code: of the process.
    """

    exit_code: ClassVar[int] = 2


class RowError(CommandError):
    """A row that is not answered with fills, named with its file and its number."""


class RetryError(CommandError):
    """What was asked for cannot be done now, and may be later."""

    exit_code = 1


def reason(error: OSError) -> str:
    """Why a file cannot be had, in the system's words."""
    return (error.strerror or "unknown").lower()
