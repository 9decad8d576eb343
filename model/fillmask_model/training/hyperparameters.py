"""Fields of hyperparameters with help texts and checks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def flag(default: Any, meaning: str) -> Any:
    """Return a dataclass field with a default and the help text of its command-line flag."""
    return dataclasses.field(default=default, metadata={"help": meaning})


def check_numbers(config: DataclassInstance, may_be_zero: Collection[str]) -> None:
    """Check that each number of a configuration is above 0, or at least 0 in some fields.

    Args:
        may_be_zero: names of the fields that may also be 0.

    Raises:
        ValueError: a number is too small or infinite, or a field for whole numbers has a value of
            another type.
    """
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        lowest = 0 if field.name in may_be_zero else 1
        if field.type == "int" and (type(value) is not int or value < lowest):
            raise ValueError(
                f"{field.name} must be a whole number of at least {lowest} (got {value!r})"
            )
        if field.type == "float" and not (0 < value < math.inf or (lowest == 0 and value == 0)):
            least = "of at least 0" if lowest == 0 else "above 0"
            raise ValueError(f"{field.name} must be a finite number {least} (got {value!r})")
