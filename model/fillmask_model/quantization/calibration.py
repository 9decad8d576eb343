"""Calibration statistics of the inputs of linear layers on real text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.equal_lengths import batches_of_equal_length
from fillmask_model.memory import release_memory
from fillmask_model.quantization.input_recorder import InputRecorder, InputStatistics
from fillmask_model.quantization.layer_precision import (
    HEAD,
    VOCABULARY,
    is_int8_linear,
    shared_input_name,
)

MASKED_SHARE = 0.15  # masks add the mask token and the head's inputs to the statistics
SAMPLED_ROWS = 512
TOKENS_AT_ONCE = 2048  # limits the memory of texts that run together


class BlockwiseStatistics(Mapping[str, InputStatistics]):
    """Input statistics of the layers that int8 graphs compute in int8, block by block.

    For fills the encoder runs on texts with masks at random positions with a fixed seed. For labels
    and sparse vectors it runs on the texts without masks. Access to a key records one block at a
    time, because the statistics of all blocks of a large encoder take more memory than the encoder.
    Access in the order of the blocks computes each block once. In an encoder whose layers share
    blocks, the object records all blocks together, because such an encoder has few blocks. The
    head's statistics stay in memory.

    A classification head may read only some tokens of the last block. The graph computes only the
    keys and values of this block for all tokens. It computes the rest of the block for the tokens
    that the head reads. The statistics for labels contain the same rows, unless layers share
    blocks.

    Keys are names of layers, such as `blocks.0.query`. With fills or sparse vectors, `vocabulary`
    is also a key.

    Args:
        model: float32 encoder on the CPU.
        texts: token ids of each text, special tokens included.
        fills: whether the graph fills masks.
        labels: whether the graph computes labels.
        sparse: whether the graph computes sparse vectors, for which the head reads all tokens.
        grams: whether to compute Gram matrices, which take half of the time.
    """

    def __init__(
        self,
        model: TiedEncoder,
        texts: Sequence[NDArray[np.int64]],
        mask_token_id: int,
        *,
        fills: bool = True,
        labels: bool = False,
        sparse: bool = False,
        grams: bool = True,
    ) -> None:
        self._model, self._grams = model, grams
        generator = np.random.default_rng(0)
        self._texts: list[_CalibrationTexts] = []
        if fills:
            masked = [_CalibrationTexts.masked(t, mask_token_id, generator) for t in texts]
            self._texts += _join_equal_lengths(masked)
        if sparse:
            self._texts += _join_equal_lengths(map(_CalibrationTexts.read_whole, texts))
        # layer whose input differs from the input of the keys and values of the same block
        self._own_query = ""
        if labels:
            first = _reads_first_token(model) and not model.config.block_order
            if first:
                self._own_query = f"blocks.{model.config.num_layers - 1}.query"
            plain = [_CalibrationTexts.plain(ids, first=first) for ids in texts]
            self._texts += _join_equal_lengths(plain)
        self._every = max(1, sum(text.input_ids.numel() for text in self._texts) // SAMPLED_ROWS)
        names = [name for name, module in model.named_modules() if is_int8_linear(name, module)]
        if fills or sparse:
            self._names = [*names, VOCABULARY]
        else:
            self._names = [name for name in names if not name.startswith(HEAD)]
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
        first = self._shared_input_name(name)
        stage = self._stage_of(first)
        if first not in self._latest | self._head:
            if self._next_stage > stage:
                self._next_stage = 0
            with torch.inference_mode():
                while self._next_stage <= stage:
                    self._run_stage()
        return (self._latest | self._head)[first]

    def _shared_input_name(self, name: str) -> str:
        first = shared_input_name(name)
        if first == self._own_query and name != first:
            return f"{first.removesuffix('query')}key"
        return first

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
            blocks = self._blocks(layers)
            with self._recorder(blocks, self._every) as recorder:
                self._hidden = [
                    self._run_layers(layers, text, x_NTD, recorder)
                    for text, x_NTD in zip(self._texts, self._hidden, strict=True)
                ]
            self._latest = recorder.statistics()
        else:
            with self._recorder((HEAD,), 1) as recorder:
                for text, x_NTD in zip(self._texts, self._hidden, strict=True):
                    if text.mask_positions is not None:
                        # runs the head without the output projection, whose input it returns
                        self._model.head(self._model.final_norm(x_NTD)[text.mask_positions])
            self._head = recorder.statistics()
        self._next_stage += 1

    def _blocks(self, layers: range) -> tuple[str, ...]:
        return tuple(f"blocks.{self._model.config.layers[layer]}." for layer in layers)

    def _recorder(self, modules: tuple[str, ...], every: int) -> InputRecorder:
        return InputRecorder(self._model, modules, every, self._own_query, grams=self._grams)

    def _run_layers(
        self, layers: range, text: _CalibrationTexts, x_NTD: Tensor, recorder: InputRecorder
    ) -> Tensor:
        contexts = self._model.attention_contexts(x_NTD.shape[1], None)
        for layer in layers:
            is_last = layer == self._model.config.num_layers - 1
            recorder.selected = text.selected if is_last else None
            x_NTD = self._model.run_layer(layer, x_NTD, contexts, recorder.selected)
        return x_NTD


def _reads_first_token(model: TiedEncoder) -> bool:
    return model.classifier is not None and model.classifier.config.pooling == "first"


@dataclass(frozen=True, slots=True, eq=False)
class _CalibrationTexts:
    """Token ids of N texts of equal length with booleans, all of shape (N, T).

    Attributes:
        mask_positions: True at tokens that the masked-language-model head reads. None for texts
            that it does not read.
        selected: True at the tokens to record in the last block. None for all tokens.
    """

    input_ids: Tensor
    mask_positions: Tensor | None = None
    selected: Tensor | None = None

    @classmethod
    def masked(
        cls, ids: NDArray[np.int64], mask_token_id: int, generator: np.random.Generator
    ) -> Self:
        chosen = generator.random(len(ids)) < MASKED_SHARE
        chosen[generator.integers(len(ids))] = True  # the head needs at least one mask
        input_ids = torch.from_numpy(np.where(chosen, mask_token_id, ids))[None]
        return cls(input_ids, mask_positions=torch.from_numpy(chosen)[None])

    @classmethod
    def read_whole(cls, ids: NDArray[np.int64]) -> Self:
        return cls(torch.from_numpy(ids)[None], torch.ones(1, len(ids), dtype=torch.bool))

    @classmethod
    def plain(cls, ids: NDArray[np.int64], *, first: bool) -> Self:
        selected = torch.from_numpy(np.arange(len(ids)) == 0)[None] if first else None
        return cls(torch.from_numpy(ids)[None], selected=selected)

    @classmethod
    def joined(cls, texts: Sequence[Self]) -> Self:
        return cls(
            torch.cat([text.input_ids for text in texts]),
            _joined([text.mask_positions for text in texts]),
            _joined([text.selected for text in texts]),
        )


def _joined(tensors: Sequence[Tensor | None]) -> Tensor | None:
    present = [tensor for tensor in tensors if tensor is not None]
    return torch.cat(present) if present else None


def _join_equal_lengths(texts: Iterable[_CalibrationTexts]) -> list[_CalibrationTexts]:
    batches = batches_of_equal_length(
        texts, lambda text: text.input_ids.numel(), lambda length: max(1, TOKENS_AT_ONCE // length)
    )
    return [_CalibrationTexts.joined(same) for same in batches]
