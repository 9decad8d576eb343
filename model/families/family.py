"""What a family has to say about its checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from model.config import EncoderConfig


@dataclass(frozen=True, slots=True)
class Family:
    """One small mapping of a checkpoint format onto `TiedEncoder`.

    Attributes:
        read_config: the fields of config.json to an EncoderConfig; ValueError where a value would
            change the maths in a way the encoder does not know.
        rename: one of the family's tensor names to the encoder's; None for a name it lacks.
        ignored: patterns (full match) of tensors that play no part in masked-language modelling.
        aliases: a tensor stored twice: second name to first. The two must be equal.
        head_prefixes: the encoder's names that an encoder-only checkpoint may lack.
    """

    read_config: Callable[[Mapping[str, Any]], EncoderConfig]
    rename: Callable[[str], str | None]
    ignored: tuple[str, ...]
    aliases: Mapping[str, str]
    head_prefixes: tuple[str, ...]
