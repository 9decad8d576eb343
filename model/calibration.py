"""What the inputs of each linear map look like on real text: the ground for rounding to int8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from model.encoder import TiedEncoder

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


@torch.inference_mode()
def collect_statistics(
    model: TiedEncoder, texts: Sequence[NDArray[np.int64]], mask_token_id: int
) -> dict[str, InputStatistics]:
    """Run texts, some tokens masked by a fixed seed, and watch every linear map's input.

    Args:
        model: the fp32 encoder.
        texts: token ids of each, special tokens included.
        mask_token_id: the mask.

    Returns:
        Statistics by the map's name, e.g. `blocks.0.query`, and of `vocabulary`.
    """
    watched = _Watched(every=max(1, sum(map(len, texts)) // SAMPLED_ROWS))
    watched.hook(model)
    generator = np.random.default_rng(0)
    try:
        for ids in texts:
            masked = generator.random(len(ids)) < MASKED_SHARE
            masked[generator.integers(len(ids))] = True  # at least one, for the head to see
            input_ids = torch.from_numpy(np.where(masked, mask_token_id, ids))[None]
            model(input_ids, torch.from_numpy(masked)[None].float())
    finally:
        watched.unhook()
    found = {name: gathered.statistics() for name, gathered in watched.gathered.items()}
    for name, module in model.named_modules():
        if is_rounded(name, module):
            found[name] = found[first_of_input(name)]
    return found


def is_rounded(name: str, module: nn.Module) -> bool:
    """Whether a module of the encoder is a linear map that int8 graphs compute in int8."""
    return isinstance(module, nn.Linear) and name != UNROUNDED


def first_of_input(name: str) -> str:
    """The map that stands for all that read what this one reads."""
    block, _, part = name.rpartition(".")
    return f"{block}.{_FIRST[part]}" if part in _FIRST else name


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
        gram = (x_RD.T @ x_RD).double().numpy()
        self._gram = gram if self._gram is None else self._gram + gram


class _Watched:
    """What entered the maps so far."""

    def __init__(self, every: int) -> None:
        self.gathered: dict[str, _Gathered] = {}
        self._every = every
        self._hooks: list[RemovableHandle] = []

    def hook(self, model: TiedEncoder) -> None:
        for name, module in model.named_modules():
            if is_rounded(name, module) and first_of_input(name) == name:
                self._hook_linear(model, name, module)
        self._hooks.append(
            model.head.register_forward_hook(lambda _, __, output: self._add(VOCABULARY, output, 1))
        )

    def unhook(self) -> None:
        for hook in self._hooks:
            hook.remove()

    def _hook_linear(self, model: TiedEncoder, name: str, module: nn.Module) -> None:
        # the head sees few rows, and all of them count
        every = 1 if name.startswith("head.") else self._every
        # in the served graph the values' bias is part of the output's
        value_bias: Tensor | None = None
        if name.endswith(".output") and model.config.attention_bias:
            value_bias = model.get_parameter(f"{name.removesuffix('output')}value.bias")

        def before(_: nn.Module, inputs: tuple[Tensor]) -> None:
            self._add(name, inputs[0] if value_bias is None else inputs[0] - value_bias, every)

        self._hooks.append(module.register_forward_pre_hook(before))

    def _add(self, name: str, rows: Tensor, every: int) -> None:
        if name not in self.gathered:
            self.gathered[name] = _Gathered(every)
        self.gathered[name].add(rows.reshape(-1, rows.shape[-1]))
