"""Errors of the command, each with an exit code and a message for the user."""

from typing import ClassVar


class CommandError(Exception):
    """An error of the command. A retry of the same command fails, except after a RetryError."""

    exit_code: ClassVar[int] = 2


class RowError(CommandError):
    """Error for an invalid row. The message names the file and the number of the row."""


class RetryError(CommandError):
    """An error after which a retry of the same command may succeed."""

    exit_code = 1


def reason(error: OSError) -> str:
    """Return the operating system's message for a file error, in lower case."""
    return (error.strerror or "unknown").lower()
