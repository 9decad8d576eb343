"""Validation of bundle.json by strict pydantic models, with errors that name the field."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from fillmask.errors import BundleError, escape_unprintable, quote

# phrases of error messages by pydantic's error type, as format strings for the error's context
_EXPECTED = {
    "string_type": "a text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "model_type": "an object",
    "dict_type": "an object",
    "tuple_type": "a list",
    "too_short": "a list with at least {min_length} entry",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt:g}",
    "literal_error": "{expected}",
}
_UNKNOWN_FIELD = "unknown_field"
_MAX_VALUE_CHARS = 40
# more than any id on the hub has
MAX_NAME_CHARS = 200
EXPORT_AGAIN = "export the checkpoint with this release of fillmask"

_Model = TypeVar("_Model", bound=BaseModel)
_Entry = TypeVar("_Entry")
Size = Annotated[int, Field(ge=1)]
TokenId = Annotated[int, Field(ge=0)]
# JSON has no tuples. fail_fast stops at the first invalid entry, because millions of errors take
# gigabytes of memory.
List = Annotated[tuple[_Entry, ...], Field(strict=False, fail_fast=True)]
FilledList = Annotated[tuple[_Entry, ...], Field(strict=False, fail_fast=True, min_length=1)]


class Strict(BaseModel):
    """Model that converts no values, such as the text "1" to a number, and ignores no fields."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, value: object) -> object:
        """Reject an object with too many fields, because pydantic creates one error per field."""
        allowed = {field.alias or name for name, field in cls.model_fields.items()}
        if (
            cls.model_config["extra"] == "forbid"
            and isinstance(value, dict)
            and len(value) > len(allowed)
        ):
            unknown = next(name for name in value if name not in allowed)
            raise PydanticCustomError(_UNKNOWN_FIELD, "unknown field", {"name": unknown})
        return value


def refuse(reason: str) -> NoReturn:
    raise BundleError(f"The bundle is invalid: {reason}.")


def unreadable(path: Path, error: OSError) -> BundleError:
    """Return the error for files that the operating system does not let the service read."""
    reason = (error.strerror or type(error).__name__).lower()
    file = f"{Path(os.fsdecode(error.filename)).name}: " if error.filename else ""
    return BundleError(
        f"The bundle {path} cannot be read ({file}{reason}); make its files readable, or copy the "
        "bundle again."
    )


def check_name(name: str) -> str:
    """Return the name of a model, which stands in lines of output, in paths and in metrics.

    Raises:
        ValueError: the name does not fit these places.
    """
    fits = name.isprintable() and name == name.strip() and 1 <= len(name) <= MAX_NAME_CHARS
    if fits and not {"", ".", ".."} & set(name.split("/")):
        return name
    raise ValueError(
        f"name must have 1 to {MAX_NAME_CHARS} printable characters without a blank at its start "
        "or end, and without a part of a path that leads elsewhere "
        f"(got {quote(escape_unprintable(name))})"
    )


def read_model(
    model: type[_Model], fields: object, where: tuple[str, ...] = (), context: object = None
) -> _Model:
    """Validate parsed JSON and return it as a pydantic model.

    Args:
        where: path of the fields in bundle.json.

    Raises:
        BundleError: a field is missing, unknown or invalid. The message names the first such field.
    """
    try:
        return model.model_validate(fields, context=context)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    path = _path((*where, *first["loc"]))
    match first["type"]:
        case "value_error":  # raised by a validator of the model
            refuse(str(first["ctx"]["error"]))
        case "missing":
            refuse(f"{path} is missing; {EXPORT_AGAIN}")
        case "extra_forbidden":
            refuse(f"{path} is an unknown field; {EXPORT_AGAIN}")
        case kind if kind == _UNKNOWN_FIELD:
            path = _path((*where, *first["loc"], first["ctx"]["name"]))
            refuse(f"{path} is an unknown field; {EXPORT_AGAIN}")
        case kind if kind in _EXPECTED:
            expected = _EXPECTED[kind].format_map(first.get("ctx", {}))
            refuse(f"{path} must be {expected} (got {_shown(first['input'])})")
    refuse(f"{path} is invalid ({first['msg']}, got {_shown(first['input'])}); {EXPORT_AGAIN}")


def _path(location: tuple[str | int, ...]) -> str:
    """Return pydantic's location of a field as a path in bundle.json.

    Examples are `golden.prompts[0].fills` and `files["model.onnx"]`.
    """
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step.isidentifier() and quote(step) == f'"{step}"':
            path += f".{step}"
        else:
            path += f"[{quote(step)}]"
    return path.removeprefix(".") or "bundle.json"


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list) and value:
        return "a list"
    text = json.dumps(value)
    return text if len(text) <= _MAX_VALUE_CHARS else f"{text[:_MAX_VALUE_CHARS]}…"
