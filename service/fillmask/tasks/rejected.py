"""Errors of texts that a request reports in place of their results."""

from dataclasses import dataclass

from fillmask.tasks.result import Result


@dataclass(frozen=True, slots=True)
class RejectedText(Result):
    """An invalid text, with the error message for the client."""

    error: str
