"""Base class of results."""

from dataclasses import fields
from typing import Any


class Result:
    """A frozen dataclass that turns into the same object as its JSON over HTTP."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are not None, as values of JSON."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type] # subclasses are dataclasses
        return {name: _plain(value) for name, value in values if value is not None}


def _plain(value: object) -> object:
    if isinstance(value, Result):
        return value.to_dict()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
