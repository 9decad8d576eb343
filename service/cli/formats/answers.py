"""A row's answer as a line of JSON: its fills, or why there are none.

Fills are what POST /fill-mask answers to one text, a list; a problem is an object.
"""

import json
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

_READABLE, _UNREADABLE = "error", "unreadable"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a row has no fills.

    Attributes:
        sentence: for the person whose row it is.
        readable: whether the row's own fields are written beside the problem.
    """

    sentence: str
    readable: bool = True

    @property
    def line(self) -> bytes:
        """As an answer."""
        return to_json({_READABLE if self.readable else _UNREADABLE: self.sentence})


def problem_of(answer: bytes) -> Problem | None:
    """The problem that an answer is, unless it is fills."""
    if not answer.startswith(b"{"):
        return None
    [(kind, sentence)] = json.loads(answer).items()
    return Problem(sentence, readable=kind == _READABLE)


def fills_of(answer: bytes) -> list[list[dict[str, Any]]]:
    """The fills of each mask, or of all masks together; of one mask without fills an empty list."""
    fills: list[Any] = json.loads(answer)
    return fills if fills and isinstance(fills[0], list) else [fills]
