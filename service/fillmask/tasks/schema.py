"""JSON schemas of responses."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel, Field, create_model

from fillmask.tasks.result import Result


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
