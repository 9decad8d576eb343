"""Answers of rows as lines of JSON.

The fills or labels of a row are a list. The score of a row is an object. A problem is an object
whose only field is `error` or `unreadable`.
"""

import json
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

_READABLE, _UNREADABLE = "error", "unreadable"
_PROBLEMS = tuple(b'{"%b":' % kind.encode() for kind in (_READABLE, _UNREADABLE))


@dataclass(frozen=True, slots=True)
class Problem:
    """Error of a row that has no results.

    Attributes:
        readable: true if the output contains the row's own fields beside the error.
    """

    message: str
    readable: bool = True

    @property
    def line(self) -> bytes:
        """Answer of the row, as one line of JSON."""
        return to_json({_READABLE if self.readable else _UNREADABLE: self.message})


def parse_problem(answer: bytes) -> Problem | None:
    """Return the problem in an answer, or None for an answer with results."""
    if not answer.startswith(_PROBLEMS):
        return None
    [(kind, message)] = json.loads(answer).items()
    return Problem(message, readable=kind == _READABLE)


def fills_of(answer: bytes) -> list[list[dict[str, Any]]]:
    """Return one list of fills per mask. Joint fills form a single list."""
    fills: list[Any] = json.loads(answer)
    return fills if fills and isinstance(fills[0], list) else [fills]
