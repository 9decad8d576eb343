"""Results of every task, and the JSON of a response."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from pydantic_core import to_json

from fillmask.errors import InvalidRequestError


class Result:
    """A frozen dataclass that turns into the same object as its JSON over HTTP."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are not None, as values of JSON."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type] # subclasses are dataclasses
        return {name: _plain(value) for name, value in values if value is not None}


@dataclass(frozen=True, slots=True)
class RejectedText(Result):
    """An invalid text, with the error message for the client."""

    error: str


_T = TypeVar("_T")


def accepted(results: Iterable[_T | RejectedText]) -> list[_T]:
    """Return the results of the texts without an error."""
    return [one for one in results if not isinstance(one, RejectedText)]


def response_parts(
    results: Sequence[_T | RejectedText], write: Callable[[_T], list[bytes]], *, single: bool
) -> list[bytes]:
    """Return the JSON of results in parts, which the caller joins once.

    Args:
        write: function that returns the JSON of a result in parts.
        single: whether the response is the only result, without a list around it.

    Raises:
        InvalidRequestError: the single text is invalid.
    """
    if single and isinstance(results[0], RejectedText):
        raise InvalidRequestError(results[0].error)
    texts = (
        [to_json(one.to_dict())] if isinstance(one, RejectedText) else write(one) for one in results
    )
    return next(texts) if single else json_list(texts)


def json_list(items: Iterable[list[bytes]]) -> list[bytes]:
    """Return the parts of a JSON list from the parts of its items."""
    parts = []
    for item in items:
        parts += [b",", *item]
    return [b"[", *parts[1:], b"]"]


def _plain(value: object) -> object:
    if isinstance(value, Result):
        return value.to_dict()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
