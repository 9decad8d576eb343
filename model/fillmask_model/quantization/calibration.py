"""Calibration statistics of the inputs of linear layers on real text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
from fillmask_model.quantization.layer_precision import HEAD

MASKED_SHARE = 0.15  # masks add the mask token and the head's inputs to the statistics
SAMPLED_ROWS = 512
TOKENS_AT_ONCE = 2048  # limits the memory of texts that run together


def calibrate(
    model: TiedEncoder,
    texts: Sequence[NDArray[np.int64]],
    mask_token_id: int,
    *,
    fills: bool = True,
    labels: bool = False,
    sparse: bool = False,
    grams: bool = True,
) -> Iterator[dict[str, InputStatistics]]:
    """Yield input statistics of the layers that int8 graphs compute in int8, block by block.

    For fills the encoder runs on texts with masks at random positions with a fixed seed. For labels
    and sparse vectors it runs on the texts without masks. One block at a time, because the
    statistics of all blocks of a large encoder take more memory than the encoder. In an encoder
    whose layers share blocks, all blocks come together, because such an encoder has few blocks.

    A classification head may read only some tokens of the last block. The graph computes only the
    keys and values of this block for all tokens. It computes the rest of the block for the tokens
    that the head reads. The statistics for labels contain the same rows, unless layers share
    blocks.

    Args:
        model: float32 encoder on the CPU.
        texts: token ids of each text, special tokens included.
        fills: whether the graph fills masks.
        labels: whether the graph computes labels.
        sparse: whether the graph computes sparse vectors, for which the head reads all tokens.
        grams: whether to compute Gram matrices, which take half of the time.

    Yields:
        Statistics by the names of layers, such as `blocks.0.query`. With fills or sparse vectors,
        those of the head and of `vocabulary` are the last.
    """
    config = model.config
    # layer whose input differs from the input of the keys and values of the same block
    own_query = ""
    if labels and _reads_first_token(model) and not config.block_order:
        own_query = f"blocks.{config.num_layers - 1}.query"
    batches = _batches(
        texts, mask_token_id, fills=fills, labels=labels, sparse=sparse, first=bool(own_query)
    )
    every = max(1, sum(batch.input_ids.numel() for batch in batches) // SAMPLED_ROWS)
    with torch.inference_mode():
        hidden = [model.embeddings(batch.input_ids, None, None) for batch in batches]
    layers = range(config.num_layers)
    for some in [layers] if config.block_order else [range(n, n + 1) for n in layers]:
        # drop the weights of earlier layers, which later steps read block by block or not at all
        release_memory(model.parameters())
        blocks = tuple(f"blocks.{config.layers[layer]}." for layer in some)
        recorder = InputRecorder(model, blocks, every, own_query, grams=grams)
        with torch.inference_mode(), recorder:
            hidden = [
                _run_layers(model, some, batch, x_NTD, recorder)
                for batch, x_NTD in zip(batches, hidden, strict=True)
            ]
        yield recorder.statistics()
    if not (fills or sparse):
        return
    release_memory(model.parameters())
    recorder = InputRecorder(model, (HEAD,), 1, own_query, grams=grams)
    with torch.inference_mode(), recorder:
        for batch, x_NTD in zip(batches, hidden, strict=True):
            if batch.mask_positions is not None:
                # runs the head without the output projection, whose input it returns
                model.head(model.final_norm(x_NTD)[batch.mask_positions])
    yield recorder.statistics()


def _run_layers(
    model: TiedEncoder,
    layers: range,
    batch: _CalibrationTexts,
    x_NTD: Tensor,
    recorder: InputRecorder,
) -> Tensor:
    contexts = model.attention_contexts(x_NTD.shape[1], None)
    for layer in layers:
        is_last = layer == model.config.num_layers - 1
        recorder.selected = batch.selected if is_last else None
        x_NTD = model.run_layer(layer, x_NTD, contexts, recorder.selected)
    return x_NTD


def _reads_first_token(model: TiedEncoder) -> bool:
    return model.classifier is not None and model.classifier.config.pooling == "first"


def _batches(
    texts: Sequence[NDArray[np.int64]],
    mask_token_id: int,
    *,
    fills: bool,
    labels: bool,
    sparse: bool,
    first: bool,
) -> list[_CalibrationTexts]:
    """Return the texts of each task in batches of equal length."""
    generator = np.random.default_rng(0)
    tasks = []
    if fills:
        tasks.append([_CalibrationTexts.masked(ids, mask_token_id, generator) for ids in texts])
    if sparse:
        tasks.append([_CalibrationTexts.read_whole(ids) for ids in texts])
    if labels:
        tasks.append([_CalibrationTexts.plain(ids, first=first) for ids in texts])
    return [batch for task in tasks for batch in _join_equal_lengths(task)]


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
