"""Family: the mapping of a checkpoint format onto the encoder."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from model.checkpoints.families.fields import Fields
from model.encoder.config import EncoderConfig

# checkpoints converted from TensorFlow call a layer norm's parameters gamma and beta
_OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}


@dataclass(frozen=True, slots=True)
class ParsedConfig:
    """Result of reading a config.json.

    Attributes:
        config: sizes and choices of the encoder.
        skipped_positions: unused rows of the position table before that of the first token.
    """

    config: EncoderConfig
    skipped_positions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Mapping of a checkpoint format onto `TiedEncoder`.

    Attributes:
        read: reads config.json; raises ValueError for values whose mathematics the encoder does
            not support.
        prefix: of the encoder's tensors in a checkpoint with a head.
        names: modules or tensors of the checkpoint to those of the encoder; `{}` stands for a
            number. A tensor with several names is split into that many parts of equal length.
        decoder: module of the output projection; in a tied checkpoint its weight is the embedding
            table.
        bias: name of the output projection's bias if it is not `{decoder}.bias`.
        ignored: patterns of tensors to ignore (full match, after the prefix).
    """

    read: Callable[[Fields], ParsedConfig]
    prefix: str
    names: Mapping[str, str | tuple[str, ...]]
    decoder: str
    bias: str = ""
    ignored: tuple[str, ...] = ()

    def strip_prefix(self, name: str) -> str:
        """Return a tensor's current name without the prefix."""
        for old, new in _OLD_NAMES.items():
            if name.endswith(old):
                name = name.removesuffix(old) + new
        return name.removeprefix(self.prefix)

    def is_ignored(self, name: str) -> bool:
        """Return whether masked-language modelling does not need a tensor."""
        return any(re.fullmatch(pattern, name) for pattern in self.ignored)

    def encoder_names(self, name: str) -> tuple[str, ...]:
        """Return the encoder's names for a checkpoint's tensor; none if it is unknown."""
        module, _, parameter = name.rpartition(".")
        for path, suffix in ((name, ""), (module, f".{parameter}")):
            numbers = re.findall(r"(?<=\.)\d+(?=\.|$)", path)
            pattern = re.sub(r"(?<=\.)\d+(?=\.|$)", "{}", path)
            if pattern in self.names:
                ours = self.names[pattern]
                parts = (ours,) if isinstance(ours, str) else ours
                return tuple(part.format(*numbers) + suffix for part in parts)
        return ()
