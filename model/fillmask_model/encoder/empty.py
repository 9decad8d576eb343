"""Encoders without weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import TiedEncoder


def empty_encoder(config: EncoderConfig, classifier: ClassifierConfig | None) -> TiedEncoder:
    """Return an encoder whose tensors have shapes but no storage."""
    with torch.device("meta"), _NoInitialisation():
        return TiedEncoder(config, classifier)


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
