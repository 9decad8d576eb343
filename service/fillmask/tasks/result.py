"""Results of every task, the JSON of a response, and its schema."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel, Field, create_model
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


class ErrorResponse(BaseModel):
    """The body of an error response."""

    error: str = Field(description="Description of the problem and of its solution.")


_Model = TypeVar("_Model", bound=BaseModel)


def never_null(schema: dict[str, Any]) -> None:
    """Change the schema of an optional field of a response, which is either missing or not null."""
    del schema["default"]
    [value, _null] = schema.pop("anyOf")
    schema |= value


def fields_of(*results: type[Result]) -> Callable[[type[_Model]], type[_Model]]:
    """Return a decorator that adds the fields of results to the type of their JSON.

    A field that not every result has is optional. The type's own fields stay.
    """

    def add(model: type[_Model]) -> type[_Model]:
        found: dict[str, Any] = {}
        names = [{one.name: one.default for one in fields(result)} for result in results]  # type: ignore[arg-type] # subclasses are dataclasses
        for result, defaults in zip(results, names, strict=True):
            for name, hint in get_type_hints(result, include_extras=True).items():
                absent = Field(default=None, json_schema_extra=never_null)
                if defaults[name] is None:
                    found[name] = hint, absent
                elif all(name in one for one in names):
                    found[name] = hint
                else:
                    found[name] = hint | None, absent
        own = {name: (field.annotation, field) for name, field in model.model_fields.items()}
        return create_model(model.__name__, __base__=model, __doc__=model.__doc__, **found | own)

    return add
