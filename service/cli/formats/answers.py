"""Answers of rows as lines of JSON: fills or a problem.

Fills are the response of POST /fill-mask to one text, a list. A problem is an object.
"""

import json
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

_READABLE, _UNREADABLE = "error", "unreadable"


@dataclass(frozen=True, slots=True)
class Problem:
    """Error of a row without fills.

    Attributes:
        message: error message for the user.
        readable: the row's own fields can be written beside the error.
    """

    message: str
    readable: bool = True

    @property
    def line(self) -> bytes:
        """The problem as an answer."""
        return to_json({_READABLE if self.readable else _UNREADABLE: self.message})


def parse_problem(answer: bytes) -> Problem | None:
    """Return the problem in an answer; None for fills."""
    if not answer.startswith(b"{"):
        return None
    [(kind, message)] = json.loads(answer).items()
    return Problem(message, readable=kind == _READABLE)


def parse_fills(answer: bytes) -> list[list[dict[str, Any]]]:
    """Return the fills of each mask, or of all masks jointly; one empty list if there are none."""
    fills: list[Any] = json.loads(answer)
    return fills if fills and isinstance(fills[0], list) else [fills]
