"""Types of the mapping of a checkpoint family to the encoder."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from torch import Tensor

from fillmask_model.checkpoints.mapping.fields import Fields
from fillmask_model.encoder.classifier import HeadActivation, Pooling
from fillmask_model.encoder.config import EncoderConfig

# checkpoints converted from TensorFlow call a layer norm's parameters gamma and beta
_OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}


@dataclass(frozen=True, slots=True)
class ParsedConfig:
    """Configuration of the encoder from a config.json.

    Attributes:
        skipped_positions: number of unused rows at the start of the position table.
        convert: function that changes tensors by their names in `TiedEncoder`, for a checkpoint
            whose tensors differ in more than their names. Some of the tensors may be missing.
    """

    config: EncoderConfig
    skipped_positions: int = 0
    convert: Callable[[dict[str, Tensor]], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierMapping:
    """Mapping of a family's classification head to `ClassificationHead`.

    Attributes:
        dense: name of the dense layer in a checkpoint, without the family's prefix. Empty for a
            head without a dense layer.
        output: name of the output layer in a checkpoint.
        norm: name of the layer norm in a checkpoint. Empty for a head without a layer norm.
        activation: activation after the dense layer.
        choices: function that reads fields of `ClassifierConfig` from the family's own fields in
            config.json. None for a family without such fields.
        labels: fixed labels. Empty for a head with its labels in config.json.
        pooling: what the head reads, unless `choices` says it.
    """

    dense: str
    output: str
    norm: str = ""
    activation: HeadActivation = "tanh"
    choices: Callable[[Fields, EncoderConfig], dict[str, Any]] | None = None
    labels: tuple[str, ...] = ()
    pooling: Pooling = "first"

    @property
    def names(self) -> dict[str, str]:
        """Name of each layer in `TiedEncoder` by the layer's name in a checkpoint."""
        names = {
            self.dense: "classifier.dense",
            self.norm: "classifier.norm",
            self.output: "classifier.output",
        }
        return {theirs: ours for theirs, ours in names.items() if theirs}


_LINEAR = ClassifierMapping(dense="", output="classifier", pooling="tokens")


def classifiers_of(
    tokens: ClassifierMapping = _LINEAR, **fields: Any
) -> dict[str, ClassifierMapping]:
    """Return the classification heads of a family.

    Args:
        tokens: head for labels of tokens, by default a linear layer.
        fields: `ClassifierMapping` of the head for labels of texts.
    """
    return {
        "ForSequenceClassification": ClassifierMapping(**fields),
        "ForTokenClassification": tokens,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Mapping of a checkpoint family to `TiedEncoder`.

    Attributes:
        read: function that reads config.json. The function raises ValueError for unsupported
            values.
        prefix: prefix of the encoder's tensors in a checkpoint with a head.
        other_prefixes: prefixes that checkpoints may have instead.
        names: names in `TiedEncoder` by module or tensor of the checkpoint. `{}` matches a number.
            A tensor with several names consists of that number of parts of equal length.
        decoder: module of the output projection. A tied checkpoint can also contain the embedding
            table as the weight of this module.
        bias: name of the output projection's bias. The default is `{decoder}.bias`.
        buffers: regular expressions for the names of tensors that the configuration determines.
            An expression matches the full name after the prefix.
        classifiers: classification heads by the end of the architecture's name, such as
            ForSequenceClassification.
        code: starts of the names of classes, or of modules, in repositories' own code that compute
            the same as this mapping.
    """

    read: Callable[[Fields], ParsedConfig]
    prefix: str
    other_prefixes: tuple[str, ...] = ()
    names: Mapping[str, str | tuple[str, ...]]
    decoder: str
    bias: str = ""
    buffers: tuple[str, ...] = ()
    classifiers: Mapping[str, ClassifierMapping] = field(default_factory=dict)
    code: tuple[str, ...] = ()

    @property
    def prefixes(self) -> tuple[str, ...]:
        return (self.prefix, *self.other_prefixes)

    def with_classifier(self, head: ClassifierMapping) -> Self:
        """Return the mapping of a checkpoint with a classification head.

        ModernBERT uses the same layer names for the classification head and for the
        masked-language-model head. In the result, these names refer to the classification head.
        """
        return replace(self, names={**self.names, **head.names})

    def strip_prefix(self, name: str) -> str:
        """Return a tensor's name without the prefix of the family.

        The suffixes gamma and beta become weight and bias.
        """
        for old, new in _OLD_NAMES.items():
            if name.endswith(old):
                name = name.removesuffix(old) + new
        for prefix in self.prefixes:
            if name.startswith(prefix):
                return name.removeprefix(prefix)
        return name

    def is_buffer(self, name: str) -> bool:
        return any(re.fullmatch(pattern, name) for pattern in self.buffers)

    def encoder_names(self, name: str) -> tuple[str, ...]:
        """Return the encoder's names for a checkpoint's tensor.

        An unknown tensor has no names.
        """
        module, _, parameter = name.rpartition(".")
        for path, suffix in ((name, ""), (module, f".{parameter}")):
            numbers = re.findall(r"(?<=\.)\d+(?=\.|$)", path)
            pattern = re.sub(r"(?<=\.)\d+(?=\.|$)", "{}", path)
            if pattern in self.names:
                ours = self.names[pattern]
                parts = (ours,) if isinstance(ours, str) else ours
                return tuple(part.format(*numbers) + suffix for part in parts)
        return ()
