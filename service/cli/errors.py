"""Errors of the command: an exit code and a message for its user."""

from typing import ClassVar


class CommandError(Exception):
    """An error that would happen again if the same command were run again.

    Attributes:
        exit_code: exit code of the process.
    """

    exit_code: ClassVar[int] = 2


class RowError(CommandError):
    """An invalid row; the message names its file and its number."""


class RetryError(CommandError):
    """An error that may not happen if the same command is run again."""

    exit_code = 1


def reason(error: OSError) -> str:
    """Return the system's reason for a file error, in lower case."""
    return (error.strerror or "unknown").lower()
