"""What the inputs of each linear map look like on real text: the ground for rounding to int8."""

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
from model.memory import give_back

MASKED_SHARE = 0.15  # so that the mask token and the head's inputs are seen as in use
SAMPLED_ROWS = 1024
ROWS_AT_ONCE = 1024  # multiplied together
VOCABULARY = "vocabulary"  # the map from hidden states to logits, by the embedding table
UNROUNDED = "embeddings.projection"  # all else begins there, and it is little work
# of a block, maps that read what another one reads
_FIRST = {"key": "query", "value": "query", "ffn_gate": "ffn_in"}


@dataclass(slots=True, eq=False)
class InputStatistics:
    """Of the rows (R, in) that entered a linear map of the served graph.

    Attributes:
        gram: (in, in) sum over rows of the outer products.
        rows: (S, in) some of the rows, about 1,024 of all texts.
    """

    gram: NDArray[np.float64]
    rows: NDArray[np.float32]


def is_rounded(name: str, module: nn.Module) -> bool:
    """Whether a module of the encoder is a linear map that int8 graphs compute in int8."""
    return isinstance(module, nn.Linear) and name != UNROUNDED


def first_of_input(name: str) -> str:
    """The map that stands for all that read what this one reads."""
    block, _, part = name.rpartition(".")
    return f"{block}.{_FIRST[part]}" if part in _FIRST else name


def collect_statistics(
    model: TiedEncoder, texts: Sequence[NDArray[np.int64]], mask_token_id: int
) -> dict[str, InputStatistics]:
    """Those of every linear map at once; arguments as for `StatisticsByBlock`."""
    return dict(StatisticsByBlock(model, texts, mask_token_id))


class StatisticsByBlock(Mapping[str, InputStatistics]):
    """Runs texts, some tokens masked by a fixed seed, and watches every linear map's input.

    One block is watched at a time, for the statistics of all blocks of a large encoder take more
    memory than the encoder. Who asks in the order of the blocks has each of them computed once.
    Where layers share blocks, there are few, and all are watched together. Those of the head are
    kept.

    Keys are names of maps, e.g. `blocks.0.query`, and `vocabulary`.

    Args:
        model: the fp32 encoder, on the CPU.
        texts: token ids of each, special tokens included.
        mask_token_id: the mask.
    """

    def __init__(
        self, model: TiedEncoder, texts: Sequence[NDArray[np.int64]], mask_token_id: int
    ) -> None:
        self._model = model
        generator = np.random.default_rng(0)
        self._texts = [_Text.of(ids, mask_token_id, generator) for ids in texts]
        self._every = max(1, sum(map(len, texts)) // SAMPLED_ROWS)
        names = [name for name, module in model.named_modules() if is_rounded(name, module)]
        self._names = [*names, VOCABULARY]
        layers = range(model.config.num_layers)
        in_turn = [layers] if model.config.block_order else [range(n, n + 1) for n in layers]
        # the layers that are watched together; of the head, none
        self._stages = [*in_turn, range(0)]
        self._next_stage = 0
        self._hidden: list[Tensor] = []
        self._latest: dict[str, InputStatistics] = {}
        self._head: dict[str, InputStatistics] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, name: str) -> InputStatistics:
        first = first_of_input(name)
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
        """Run the next layers on what the ones before them gave, or the head."""
        # weights of the layers before are wanted again block by block, if at all
        give_back(self._model.parameters())
        layers = self._stages[self._next_stage]
        if self._next_stage == 0:
            self._hidden = [self._model.embeddings(t.input_ids, None, None) for t in self._texts]
        if layers:
            with _Watch(self._model, self._blocks(layers), self._every) as watch:
                self._hidden = [self._through(layers, x_1TD) for x_1TD in self._hidden]
            self._latest = watch.statistics()
        else:
            with _Watch(self._model, ("head.",), 1) as watch:
                for text, x_1TD in zip(self._texts, self._hidden, strict=True):
                    self._model.project(self._model.final_norm(x_1TD)[text.masked])
            self._head = watch.statistics()
        self._next_stage += 1

    def _blocks(self, layers: range) -> tuple[str, ...]:
        return tuple(f"blocks.{self._model.config.layers[layer]}." for layer in layers)

    def _through(self, layers: range, x_1TD: Tensor) -> Tensor:
        views = self._model.views(x_1TD.shape[1], None)
        for layer in layers:
            x_1TD = self._model.run_layer(layer, x_1TD, views)
        return x_1TD


@dataclass(frozen=True, slots=True, eq=False)
class _Text:
    """A text as the encoder reads it, and where it is masked: (1, T) each."""

    input_ids: Tensor
    masked: Tensor

    @classmethod
    def of(cls, ids: NDArray[np.int64], mask_token_id: int, generator: np.random.Generator) -> Self:
        chosen = generator.random(len(ids)) < MASKED_SHARE
        chosen[generator.integers(len(ids))] = True  # at least one, for the head to see
        input_ids = torch.from_numpy(np.where(chosen, mask_token_id, ids))[None]
        return cls(input_ids, torch.from_numpy(chosen)[None])


class _Gathered:
    """What entered one map so far.

    Rows wait for others before they are multiplied: a Gram matrix of 3,072 channels takes longer to
    add to than a text takes to multiply.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._gram: NDArray[np.float64] | None = None
        self._samples: list[NDArray[np.float32]] = []
        self._waiting: list[Tensor] = []

    def add(self, x_RD: Tensor) -> None:
        self._samples.append(x_RD[:: self._every].numpy().copy())
        self._waiting.append(x_RD)
        if sum(map(len, self._waiting)) >= ROWS_AT_ONCE:
            self._multiply()

    def statistics(self) -> InputStatistics:
        if self._waiting:
            self._multiply()
        assert self._gram is not None  # noqa: S101 - made with the first rows
        return InputStatistics(self._gram, np.concatenate(self._samples))

    def _multiply(self) -> None:
        x_RD = torch.cat(self._waiting)
        self._waiting.clear()
        gram = (x_RD.T @ x_RD).numpy()
        if self._gram is None:
            self._gram = gram.astype(np.float64)
        else:
            self._gram += gram


class _Watch:
    """What enters the maps of some modules while this is open.

    Args:
        model: the encoder.
        modules: prefixes of the maps' names; with "head." among them the vocabulary's as well.
        every: one row of so many is kept as it is.
    """

    def __init__(self, model: TiedEncoder, modules: tuple[str, ...], every: int) -> None:
        self._model, self._modules, self._every = model, modules, every
        self._gathered: dict[str, _Gathered] = {}
        self._hooks: list[RemovableHandle] = []

    def __enter__(self) -> Self:
        for name, module in self._model.named_modules():
            watched = name.startswith(self._modules) and is_rounded(name, module)
            if watched and first_of_input(name) == name:
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
        return {name: gathered.statistics() for name, gathered in self._gathered.items()}

    def _hook_linear(self, name: str, module: nn.Module) -> None:
        # in the served graph the values' bias is part of the output's
        value_bias: Tensor | None = None
        if name.endswith(".output") and self._model.config.attention_bias:
            value_bias = self._model.get_parameter(f"{name.removesuffix('output')}value.bias")

        def before(_: nn.Module, inputs: tuple[Tensor]) -> None:
            self._add(name, inputs[0] if value_bias is None else inputs[0] - value_bias)

        self._hooks.append(module.register_forward_pre_hook(before))

    def _add(self, name: str, rows: Tensor) -> None:
        if name not in self._gathered:
            self._gathered[name] = _Gathered(self._every)
        self._gathered[name].add(rows.reshape(-1, rows.shape[-1]))
