"""Answers of rows as lines of JSON.

An answer with fills is a list, as in the response of POST /fill-mask to one text. An answer with a
problem is an object.
"""

import json
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

_READABLE, _UNREADABLE = "error", "unreadable"


@dataclass(frozen=True, slots=True)
class Problem:
    """Error of a row that has no fills.

    Attributes:
        message: error message for the user.
        readable: true if the output contains the row's own fields beside the error.
    """

    message: str
    readable: bool = True

    @property
    def line(self) -> bytes:
        """Answer of the row, as one line of JSON."""
        return to_json({_READABLE if self.readable else _UNREADABLE: self.message})


def parse_problem(answer: bytes) -> Problem | None:
    """Return the problem in an answer, or None for an answer with fills."""
    if not answer.startswith(b"{"):
        return None
    [(kind, message)] = json.loads(answer).items()
    return Problem(message, readable=kind == _READABLE)


def parse_fills(answer: bytes) -> list[list[dict[str, Any]]]:
    """Return one list of fills per mask. Joint fills form a single list."""
    fills: list[Any] = json.loads(answer)
    return fills if fills and isinstance(fills[0], list) else [fills]
