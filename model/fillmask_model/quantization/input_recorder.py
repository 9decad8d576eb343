"""Recorder of the inputs of linear layers during a forward pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.quantization.layer_precision import (
    HEAD,
    VOCABULARY,
    is_int8_linear,
    shared_input_name,
)

ROWS_AT_ONCE = 1024  # rows per update of a Gram matrix


@dataclass(slots=True, eq=False)
class InputStatistics:
    """Statistics of the input rows (R, in) of a linear layer in the served graph.

    Attributes:
        gram: (in, in) Gram matrix, the sum of the rows' outer products, or (0, 0) if not
            computed.
        rows: (S, in) sample of about 512 rows of all texts, or all rows for a layer of the head.
    """

    gram: NDArray[np.float64]
    rows: NDArray[np.float32]


class _InputAccumulator:
    """Accumulator of one linear layer's input statistics.

    A buffer collects rows before the product, because an addition to a Gram matrix of 3,072
    channels takes longer than the product of one text.
    """

    def __init__(self, every: int, *, grams: bool) -> None:
        self._every, self._grams = every, grams
        self._gram: NDArray[np.float64] = np.empty((0, 0))
        self._samples: list[NDArray[np.float32]] = []
        self._buffer: list[Tensor] = []
        self._buffered_rows = 0

    def add(self, x_RD: Tensor) -> None:
        self._samples.append(x_RD[:: self._every].numpy().copy())
        if not self._grams:
            return
        self._buffer.append(x_RD)
        self._buffered_rows += len(x_RD)
        if self._buffered_rows >= ROWS_AT_ONCE:
            self._multiply()

    def statistics(self) -> InputStatistics:
        if self._buffer:
            self._multiply()
        return InputStatistics(self._gram, np.concatenate(self._samples))

    def _multiply(self) -> None:
        x_RD = torch.cat(self._buffer)
        self._buffer.clear()
        self._buffered_rows = 0
        gram = (x_RD.T @ x_RD).numpy()
        if not self._gram.size:
            self._gram = gram.astype(np.float64)
        else:
            self._gram += gram


class InputRecorder:
    """Context manager that records the inputs of some modules' linear layers.

    Args:
        modules: prefixes of the layers' names. "head." includes the output projection.
        every: interval between sampled rows, in rows.
        own_query: name of a query layer whose input differs from the input of the keys and values,
            or "" if all layers share their inputs.
        grams: whether to compute Gram matrices.

    Attributes:
        selected: True at the tokens (1, T) to record for the layer `own_query`. None for all
            tokens.
    """

    def __init__(
        self,
        model: TiedEncoder,
        modules: tuple[str, ...],
        every: int,
        own_query: str,
        *,
        grams: bool,
    ) -> None:
        self._model, self._modules, self._every = model, modules, every
        self._grams = grams
        self._own_query = own_query
        self.selected: Tensor | None = None
        self._inputs: dict[str, _InputAccumulator] = {}
        self._sources: dict[str, str] = {}  # layer whose input is recorded, by layer
        self._hooks: list[RemovableHandle] = []

    def __enter__(self) -> Self:
        for name, module in self._model.named_modules():
            if name.startswith(self._modules) and is_int8_linear(name, module):
                self._sources[name] = self._source(name)
                if self._sources[name] == name:
                    self._hook_linear(name, module)
        if HEAD in self._modules:
            self._sources[VOCABULARY] = VOCABULARY
            head = self._model.head.register_forward_hook(
                lambda _, __, output: self._add(VOCABULARY, output)
            )
            self._hooks.append(head)
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def statistics(self) -> dict[str, InputStatistics]:
        """Return the statistics by layer. Layers with the same input share an object."""
        recorded = {name: inputs.statistics() for name, inputs in self._inputs.items()}
        return {name: recorded[source] for name, source in self._sources.items()}

    def _source(self, name: str) -> str:
        first = shared_input_name(name)
        if first == self._own_query and name != first:
            return f"{first.removesuffix('query')}key"
        return first

    def _hook_linear(self, name: str, module: nn.Module) -> None:
        # the served graph folds the value bias into the output bias
        value_bias: Tensor | None = None
        if name.endswith(".output") and self._model.config.attention_bias:
            value_bias = self._model.get_parameter(f"{name.removesuffix('output')}value.bias")

        def before(_: nn.Module, inputs: tuple[Tensor]) -> None:
            x = inputs[0]
            if name == self._own_query and self.selected is not None:
                x = x[self.selected]
            self._add(name, x if value_bias is None else x - value_bias)

        self._hooks.append(module.register_forward_pre_hook(before))

    def _add(self, name: str, rows: Tensor) -> None:
        if name not in self._inputs:
            self._inputs[name] = _InputAccumulator(self._every, grams=self._grams)
        self._inputs[name].add(rows.reshape(-1, rows.shape[-1]))
