"""Encoders without weights, and their numbers of parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import HEAD_PREFIXES, OUTPUT_TABLE, TiedEncoder


def empty_encoder(config: EncoderConfig, classifier: ClassifierConfig | None) -> TiedEncoder:
    """Return an encoder whose tensors have shapes but no storage."""
    with torch.device("meta"), _NoInitialisation():
        return TiedEncoder(config, classifier)


@dataclass(slots=True)
class ParameterCount:
    """Numbers of parameters by part.

    Attributes:
        encoder: embeddings and blocks.
        head: masked-language-model head without a table.
        labels: classification head.
    """

    encoder: int = 0
    head: int = 0
    labels: int = 0

    @property
    def tied(self) -> int:
        return self.encoder + self.head

    @property
    def classifier(self) -> int:
        """Number of parameters of the encoder with only the classification head."""
        return self.encoder + self.labels


def count_parameters(
    config: EncoderConfig, classifier: ClassifierConfig | None = None
) -> ParameterCount:
    """Count parameters from a configuration. A tied table counts once (Press & Wolf 2017).

    Args:
        classifier: configuration of the classification head. None for an encoder without labels.
    """
    count = ParameterCount()
    for name, parameter in empty_encoder(config, classifier).named_parameters():
        if name.startswith("classifier."):
            count.labels += parameter.numel()
        elif not name.startswith(HEAD_PREFIXES):
            count.encoder += parameter.numel()
        elif name != OUTPUT_TABLE:
            count.head += parameter.numel()
    return count


class _NoInitialisation(TorchFunctionMode):
    """Mode in which torch.nn.init returns its first argument.

    Random values of tensors without storage change nothing, but import torch's compiler (1.5 s).
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        arguments = kwargs or {}
        if getattr(func, "__module__", "") == torch.nn.init.__name__:
            return arguments["tensor"] if "tensor" in arguments else args[0]
        return func(*args, **arguments)
