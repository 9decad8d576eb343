"""Calibration statistics of each linear layer's inputs on real text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from model.encoder.encoder import TiedEncoder
from model.memory import release_memory

MASKED_SHARE = 0.15  # masks add the mask token and the head's inputs to the statistics
SAMPLED_ROWS = 1024
ROWS_AT_ONCE = 1024  # rows per update of a Gram matrix
VOCABULARY = "vocabulary"  # name of the output projection in statistics and plans
# name of a small projection that stays in float32, because every layer depends on its output
FLOAT_PROJECTION = "embeddings.projection"
# layers of a block by name, with the layer that has the same input
_SHARED_INPUT = {"key": "query", "value": "query", "ffn_gate": "ffn_in"}


@dataclass(slots=True, eq=False)
class InputStatistics:
    """Statistics of the input rows (R, in) of a linear layer in the served graph.

    Attributes:
        gram: (in, in) Gram matrix, the sum of the rows' outer products.
        rows: (S, in) sample of about 1,024 rows of all texts.
    """

    gram: NDArray[np.float64]
    rows: NDArray[np.float32]


def is_int8_linear(name: str, module: nn.Module) -> bool:
    """Return whether int8 graphs compute a module of the encoder in int8."""
    in_float32 = name == FLOAT_PROJECTION or name.startswith("classifier.")
    return isinstance(module, nn.Linear) and not in_float32


def shared_input_name(name: str) -> str:
    """Return the name of the first layer with the same input."""
    block, _, part = name.rpartition(".")
    return f"{block}.{_SHARED_INPUT[part]}" if part in _SHARED_INPUT else name


def collect_statistics(
    model: TiedEncoder, texts: Sequence[NDArray[np.int64]], mask_token_id: int
) -> dict[str, InputStatistics]:
    """Collect the statistics of every linear layer.

    Arguments are those of `BlockwiseStatistics`.
    """
    return dict(BlockwiseStatistics(model, texts, mask_token_id))


class BlockwiseStatistics(Mapping[str, InputStatistics]):
    """Statistics of every linear layer's input, computed block by block on access.

    The encoder runs on texts with some tokens masked, from a fixed seed. The object records one
    block at a time, because the statistics of all blocks of a large encoder take more memory than
    the encoder. Access in the order of the blocks computes each block once. In an encoder whose
    layers share blocks, the object records all blocks together, because they are few. The head's
    statistics stay in memory.

    Keys are `vocabulary` and names of layers, such as `blocks.0.query`.

    Args:
        model: fp32 encoder on the CPU.
        texts: token ids of each text, special tokens included.
        mask_token_id: id of the mask token.
    """

    def __init__(
        self, model: TiedEncoder, texts: Sequence[NDArray[np.int64]], mask_token_id: int
    ) -> None:
        self._model = model
        generator = np.random.default_rng(0)
        self._texts = [_MaskedText.from_ids(ids, mask_token_id, generator) for ids in texts]
        self._every = max(1, sum(map(len, texts)) // SAMPLED_ROWS)
        names = [name for name, module in model.named_modules() if is_int8_linear(name, module)]
        self._names = [*names, VOCABULARY]
        layers = range(model.config.num_layers)
        blocks = [layers] if model.config.block_order else [range(n, n + 1) for n in layers]
        # ranges of layers to record together, and an empty range for the head
        self._stages = [*blocks, range(0)]
        self._next_stage = 0
        self._hidden: list[Tensor] = []
        self._latest: dict[str, InputStatistics] = {}
        self._head: dict[str, InputStatistics] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, name: str) -> InputStatistics:
        first = shared_input_name(name)
        stage = self._stage_of(first)
        if first not in self._latest | self._head:
            if self._next_stage > stage:
                self._next_stage = 0
            with torch.inference_mode():
                while self._next_stage <= stage:
                    self._run_stage()
        return (self._latest | self._head)[first]

    def _stage_of(self, name: str) -> int:
        if name not in self._names:
            raise KeyError(name)
        block = re.match(r"blocks\.(\d+)\.", name)
        if block is None:
            return len(self._stages) - 1
        return 0 if self._model.config.block_order else int(block[1])

    def _run_stage(self) -> None:
        """Run the next layers or the head on the current hidden states."""
        # drop the weights of earlier layers, which later steps read block by block or not at all
        release_memory(self._model.parameters())
        layers = self._stages[self._next_stage]
        if self._next_stage == 0:
            self._hidden = [self._model.embeddings(t.input_ids, None, None) for t in self._texts]
        if layers:
            with _InputRecorder(self._model, self._blocks(layers), self._every) as recorder:
                self._hidden = [self._run_layers(layers, x_1TD) for x_1TD in self._hidden]
            self._latest = recorder.statistics()
        else:
            with _InputRecorder(self._model, ("head.",), 1) as recorder:
                for text, x_1TD in zip(self._texts, self._hidden, strict=True):
                    self._model.logits(self._model.final_norm(x_1TD)[text.masked])
            self._head = recorder.statistics()
        self._next_stage += 1

    def _blocks(self, layers: range) -> tuple[str, ...]:
        return tuple(f"blocks.{self._model.config.layers[layer]}." for layer in layers)

    def _run_layers(self, layers: range, x_1TD: Tensor) -> Tensor:
        contexts = self._model.attention_contexts(x_1TD.shape[1], None)
        for layer in layers:
            x_1TD = self._model.run_layer(layer, x_1TD, contexts)
        return x_1TD


@dataclass(frozen=True, slots=True, eq=False)
class _MaskedText:
    """Token ids (1, T) of a masked text, with booleans (1, T) of the mask positions."""

    input_ids: Tensor
    masked: Tensor

    @classmethod
    def from_ids(
        cls, ids: NDArray[np.int64], mask_token_id: int, generator: np.random.Generator
    ) -> Self:
        chosen = generator.random(len(ids)) < MASKED_SHARE
        chosen[generator.integers(len(ids))] = True  # the head needs at least one mask
        input_ids = torch.from_numpy(np.where(chosen, mask_token_id, ids))[None]
        return cls(input_ids, torch.from_numpy(chosen)[None])


class _InputAccumulator:
    """Accumulator of one linear layer's input statistics.

    A buffer collects rows before the product, because an addition to a Gram matrix of 3,072
    channels takes longer than the product of one text.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._gram: NDArray[np.float64] | None = None
        self._samples: list[NDArray[np.float32]] = []
        self._buffer: list[Tensor] = []

    def add(self, x_RD: Tensor) -> None:
        self._samples.append(x_RD[:: self._every].numpy().copy())
        self._buffer.append(x_RD)
        if sum(map(len, self._buffer)) >= ROWS_AT_ONCE:
            self._multiply()

    def statistics(self) -> InputStatistics:
        if self._buffer:
            self._multiply()
        assert self._gram is not None  # noqa: S101 - set by the first rows
        return InputStatistics(self._gram, np.concatenate(self._samples))

    def _multiply(self) -> None:
        x_RD = torch.cat(self._buffer)
        self._buffer.clear()
        gram = (x_RD.T @ x_RD).numpy()
        if self._gram is None:
            self._gram = gram.astype(np.float64)
        else:
            self._gram += gram


class _InputRecorder:
    """Context manager that records the inputs of some modules' linear layers.

    Args:
        model: the encoder.
        modules: prefixes of the layers' names. "head." includes the output projection.
        every: interval between sampled rows, in rows.
    """

    def __init__(self, model: TiedEncoder, modules: tuple[str, ...], every: int) -> None:
        self._model, self._modules, self._every = model, modules, every
        self._inputs: dict[str, _InputAccumulator] = {}
        self._hooks: list[RemovableHandle] = []

    def __enter__(self) -> Self:
        for name, module in self._model.named_modules():
            recorded = name.startswith(self._modules) and is_int8_linear(name, module)
            if recorded and shared_input_name(name) == name:
                self._hook_linear(name, module)
        if "head." in self._modules:
            head = self._model.head.register_forward_hook(
                lambda _, __, output: self._add(VOCABULARY, output)
            )
            self._hooks.append(head)
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def statistics(self) -> dict[str, InputStatistics]:
        return {name: inputs.statistics() for name, inputs in self._inputs.items()}

    def _hook_linear(self, name: str, module: nn.Module) -> None:
        # the served graph folds the value bias into the output bias
        value_bias: Tensor | None = None
        if name.endswith(".output") and self._model.config.attention_bias:
            value_bias = self._model.get_parameter(f"{name.removesuffix('output')}value.bias")

        def before(_: nn.Module, inputs: tuple[Tensor]) -> None:
            self._add(name, inputs[0] if value_bias is None else inputs[0] - value_bias)

        self._hooks.append(module.register_forward_pre_hook(before))

    def _add(self, name: str, rows: Tensor) -> None:
        if name not in self._inputs:
            self._inputs[name] = _InputAccumulator(self._every)
        self._inputs[name].add(rows.reshape(-1, rows.shape[-1]))
