"""What a family has to say about its checkpoints."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from model.checkpoints.families.fields import Fields
from model.encoder.config import EncoderConfig

# TensorFlow-era checkpoints call a layer norm's parameters gamma and beta
_OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a config.json says.

    Attributes:
        config: the encoder.
        skipped_positions: rows of the position table before that of a text's first token.
    """

    config: EncoderConfig
    skipped_positions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One small mapping of a checkpoint format onto `TiedEncoder`.

    Attributes:
        read: the fields of config.json; ValueError where a value would change the maths in a way
            the encoder does not know.
        prefix: that of the encoder's tensors in a checkpoint with a head.
        names: modules or tensors of the checkpoint to those of the encoder; `{}` stands for a
            number. A tensor that holds several is cut into as many parts of equal length.
        decoder: the map from the head to the vocabulary, whose weight is the table where the
            checkpoint is tied.
        bias: the name of that map's bias, where it is not the decoder's own.
        ignored: patterns (full match, after the prefix) of tensors that play no part.
    """

    read: Callable[[Fields], Reading]
    prefix: str
    names: Mapping[str, str | tuple[str, ...]]
    decoder: str
    bias: str = ""
    ignored: tuple[str, ...] = ()

    def plain(self, name: str) -> str:
        """A tensor's name without prefix, as of today."""
        for old, new in _OLD_NAMES.items():
            if name.endswith(old):
                name = name.removesuffix(old) + new
        return name.removeprefix(self.prefix)

    def plays_no_part(self, plain: str) -> bool:
        """Whether a tensor has nothing to do with masked-language modelling."""
        return any(re.fullmatch(pattern, plain) for pattern in self.ignored)

    def renamed(self, plain: str) -> tuple[str, ...]:
        """The encoder's tensors that one of the checkpoint's holds; none for an unknown name."""
        module, _, kind = plain.rpartition(".")
        for of, suffix in ((plain, ""), (module, f".{kind}")):
            numbers = re.findall(r"(?<=\.)\d+(?=\.|$)", of)
            pattern = re.sub(r"(?<=\.)\d+(?=\.|$)", "{}", of)
            if pattern in self.names:
                ours = self.names[pattern]
                parts = (ours,) if isinstance(ours, str) else ours
                return tuple(part.format(*numbers) + suffix for part in parts)
        return ()
