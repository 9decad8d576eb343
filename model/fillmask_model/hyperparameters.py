"""Hyperparameters as fields of a dataclass, with flags of the command line and checks."""

from __future__ import annotations

import argparse
import dataclasses
import math
from dataclasses import dataclass
from typing import Any, TypeVar

_Config = TypeVar("_Config", bound="Hyperparameters")


def flag(default: Any, meaning: str, *, least: int = 1, below: float = math.inf) -> Any:
    """Return a field.

    Args:
        least: lowest whole number. 0 also allows a float of 0, which otherwise must be above.
        below: exclusive upper bound of a float.
    """
    metadata = {"help": meaning, "least": least, "below": below}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyperparameters:
    """Hyperparameters of every training.

    Each field is a flag of its command with the help text that follows its default.

    Raises:
        ValueError: a number is out of its range, or a whole number has another type.
    """

    batch_rows: int = flag(32, "number of rows in one batch")
    learning_rate: float = flag(5e-4, "peak learning rate")
    # Loshchilov & Hutter 2019
    weight_decay: float = flag(
        0.01, "weight decay of AdamW for matrices, but not for vectors", least=0
    )
    clip_norm: float = flag(1.0, "maximum of the global gradient norm")
    seed: int = flag(0, "seed of new weights, order of rows, masks and dropout", least=0)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            name, value, least = field.name, getattr(self, field.name), field.metadata["least"]
            if field.type == "int" and (type(value) is not int or value < least):
                raise ValueError(
                    f"{name} must be a whole number of at least {least} (got {value!r})"
                )
            if field.type == "float":
                if not (0 < value < math.inf or (least == 0 and value == 0)):
                    bound = "above 0" if least else "of at least 0"
                    raise ValueError(f"{name} must be a finite number {bound} (got {value!r})")
                if not value < (below := field.metadata["below"]):
                    raise ValueError(f"{name} must be below {below} (got {value!r})")


def add_flags(parser: argparse.ArgumentParser, config: type[Hyperparameters]) -> None:
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
