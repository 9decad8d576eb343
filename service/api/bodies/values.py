"""Helpers for the JSON values and JSON schemas of request bodies."""

import json

from pydantic_core import PydanticCustomError

from service.errors import MAX_QUOTED_CHARS

CLIENT_ERROR = "client_error"  # type of pydantic errors with a message for the client
NOT_BLANK = r"\S"  # at least one character that is not white space


def client_error(message: str) -> PydanticCustomError:
    """Create a validation error with a message for the client."""
    return PydanticCustomError(CLIENT_ERROR, "{message}", {"message": message})


def integer_of(value: object) -> int | None:
    """Convert a JSON number such as 5 or 5.0 to an integer.

    Returns:
        The integer, or None for any other value.
    """
    if isinstance(value, float) and value.is_integer():
        return int(value)
    # type() rejects true, which isinstance() accepts as an integer
    return value if type(value) is int else None


def describe(value: object) -> str:
    """Return the start of a JSON value for a message, or only the type of a list or an object."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return json.dumps(value, ensure_ascii=False)[:MAX_QUOTED_CHARS]
