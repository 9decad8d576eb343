"""Configurations and batches for the exported graphs, with PyTorch's results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from fillmask.engine.passes import ModelPass
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import TiedEncoder
from tests.model.samples import small_config

CONFIGS: dict[str, EncoderConfig] = {
    "bert": small_config(vocab_size=97, num_layers=3),
    "packed": EncoderConfig.packed(
        vocab_size=50, d_model=16, num_layers=2, num_heads=4, max_positions=17
    ),
    "one pre-norm block": small_config(
        num_layers=1, norm_placement="pre", final_norm=True, activation="gelu_tanh"
    ),
    "fixed positions, no types, norms of queries and keys": small_config(
        positions="fixed",
        type_vocab_size=0,
        query_key_norm=True,
        ffn_bias="input",
        activation="relu",
        head_transform=False,
    ),
    "narrow embeddings, shared blocks": small_config(
        embedding_size=10,
        num_layers=5,
        block_order=(0, 0, 1, 1, 1),
        activation="gelu_tanh",
        head_activation="gelu_erf",
    ),
    "bias by distance, two tables": small_config(
        vocab_size=83, relative_buckets=32, type_vocab_size=0, tied=False
    ),
    "rotations, masks dropped": small_config(
        positions="none",
        type_vocab_size=0,
        norm_placement="pre",
        embedding_norm=False,
        final_norm=True,
        rotary_base=1e4,
        token_dropout_id=3,
    ),
    "windows, gates, few biases": small_config(
        num_layers=4,
        positions="none",
        type_vocab_size=0,
        norm_placement="pre",
        norm_bias=False,
        first_attention_norm=False,
        final_norm=True,
        attention_bias=False,
        ffn_bias="none",
        gated_ffn=True,
        rotary_base=1.6e5,
        local_rotary_base=1e4,
        local_layers=(1, 2),
        local_window=2,
        head_dense_bias=False,
        tied=False,
    ),
    "gates with biases, types without positions": small_config(
        positions="none",
        gated_ffn=True,
        rotary_base=1e4,
        local_rotary_base=1e4,
        local_layers=(1,),
        local_window=3,
    ),
    "root mean squares, norms of queries and keys, scaled rotations": small_config(
        norm_kind="rms",
        norm_bias=False,
        positions="none",
        type_vocab_size=0,
        norm_placement="pre",
        embedding_norm=False,
        final_norm=True,
        attention_bias=False,
        query_key_norm=True,
        ffn_bias="output",
        gated_ffn=True,
        activation="silu",
        rotary_base=1e4,
        rotary_frequencies=(0.9, 0.02, 0.0003, 0.00001),
        rotary_gain=1.1,
        head_transform=False,
    ),
    "two dense layers in the head, SiLU": small_config(
        head_inner=11, head_norm=False, activation="silu", head_activation="gelu_tanh"
    ),
}


@dataclass(frozen=True, slots=True)
class PaddedBatch:
    """Padded batch with masks.

    The arrays have the shape (N, T) for N texts of at most T tokens.
    """

    input_ids: NDArray[np.int64]
    attention_mask: NDArray[np.int64]
    mask_indicator: NDArray[np.float32]

    def feed(self) -> dict[str, NDArray[np.generic]]:
        """Return the inputs of the reference graph."""
        return {
            "input_ids": self.input_ids,
            "attention_mask": self.attention_mask,
            "mask_indicator": self.mask_indicator,
        }

    def logits(self, model: TiedEncoder) -> NDArray[np.float32]:
        with torch.inference_mode():
            result = model(
                torch.from_numpy(self.input_ids),
                torch.from_numpy(self.mask_indicator),
                torch.from_numpy(self.attention_mask),
            )
        logits: NDArray[np.float32] = result.numpy()
        return logits

    def requests(self, targets: NDArray[np.int64], top_k: int) -> list[ModelPass]:
        """Return one pass per text, without padding and with its rows of the targets (M, K)."""
        requests, start = [], 0
        for ids, keep, masked in zip(
            self.input_ids, self.attention_mask, self.mask_indicator, strict=True
        ):
            positions = np.flatnonzero(masked > 0.5)
            stop = start + len(positions)
            requests.append(ModelPass(ids[keep == 1], positions, top_k, targets[start:stop]))
            start = stop
        return requests


def padded_batch(vocab_size: int) -> PaddedBatch:
    """Return a batch of texts of different lengths, with masks also at the ends of texts."""
    lengths = np.array([11, 5, 7, 3])
    input_ids = np.random.default_rng(0).integers(0, vocab_size, (4, 11))
    attention_mask = (np.arange(11) < lengths[:, None]).astype(np.int64)
    mask_indicator = np.zeros((4, 11), np.float32)
    for text, position in ((0, 0), (0, 10), (1, 4), (2, 3), (3, 1)):
        mask_indicator[text, position] = 1
    return PaddedBatch(input_ids, attention_mask, mask_indicator)


def random_text(
    generator: np.random.Generator, vocab_size: int, top_k: int, length: int, masks: int
) -> ModelPass:
    """Return a pass of random tokens with masks at random positions and two targets per mask."""
    positions = np.sort(generator.choice(length, masks, replace=False))
    ids = generator.integers(0, vocab_size, length)
    return ModelPass(ids, positions, top_k, np.array([[1, 2]] * masks))
