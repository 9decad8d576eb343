"""Helpers that read the values of parameters and describe them in messages."""

from collections.abc import Mapping
from operator import index

from fillmask.errors import MAX_QUOTED_CHARS, to_json


def integer_of(value: object) -> int | None:
    """Convert a whole number, such as 5, 5.0 or NumPy's int64(5). None for any other value."""
    if type(value) is int:  # the usual case
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, bool):
        return None
    try:
        return index(value)  # type: ignore[arg-type] # any object may be an integer
    except TypeError:
        return None


def describe(value: object) -> str:
    """Return the start of a value as JSON for a message, or only the type of a large value."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    try:
        return to_json(value)[:MAX_QUOTED_CHARS]
    # a value without a counterpart in JSON, or an integer with more digits than Python prints
    except (TypeError, ValueError):
        return f"a value of type {type(value).__name__}"


def describe_items(value: list[object]) -> str:
    """Return the start of a list of numbers as JSON for a message."""
    return f"[{', '.join(map(describe, value[:3]))}{', …' if len(value) > 3 else ''}]"


def merge_parameters(common: Mapping[str, object], own: Mapping[str, object]) -> dict[str, object]:
    """Return the parameters of a text. A null keeps the common value.

    A null without a common value stays, so that the validation refuses an unknown name.
    """
    given = {name: value for name, value in own.items() if value is not None or name not in common}
    return {**common, **given}
