"""Hyperparameters as fields of a dataclass, with flags of the command line and checks."""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Config = TypeVar("_Config", bound="DataclassInstance")


def flag(default: Any, meaning: str) -> Any:
    return dataclasses.field(default=default, metadata={"help": meaning})


def add_flags(parser: argparse.ArgumentParser, config: type[DataclassInstance]) -> None:
    for field in dataclasses.fields(config):
        name, meaning = "--" + field.name.replace("_", "-"), field.metadata["help"]
        if field.type == "bool":
            parser.add_argument(name, action="store_true", help=meaning)
            continue
        kind = float if field.type == "float" else int
        help_text = f"{meaning} (default: %(default)s)"
        parser.add_argument(name, type=kind, default=field.default, help=help_text)


def from_flags(config: type[_Config], options: argparse.Namespace) -> _Config:
    fields = dataclasses.fields(config)
    return config(**{field.name: getattr(options, field.name) for field in fields})


def check_numbers(config: DataclassInstance, may_be_zero: Collection[str]) -> None:
    """Check that each number of a configuration is above 0, or at least 0 in some fields.

    Raises:
        ValueError: a number is too small or infinite, or a whole number has another type.
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
