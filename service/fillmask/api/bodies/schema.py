"""JSON schemas of responses."""

from typing import Any


def never_null(schema: dict[str, Any]) -> None:
    """Change the schema of an optional field of a response, which is either missing or not null."""
    del schema["default"]
    [value, _null] = schema.pop("anyOf")
    schema |= value
