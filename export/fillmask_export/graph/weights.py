"""Tensors of an encoder as float32 arrays for the graph builders.

Shapes: P positions, E width of the table, d width of a head, H heads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.embeddings import Embeddings
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.encoder.positions import (
    relative_position_buckets,
    rotary_angles,
    rotary_frequencies,
)

# name of the sum (P, E) of position embeddings and token type 0
POSITIONS = "embeddings.position"
# names of the cosines and sines (P, d/2) of rotary angles by attention range
COSINES, SINES = "rotation.{}.cosine", "rotation.{}.sine"
EVERYTHING, WINDOW = "everything", "window"
# name of the relative position bias (2P - 1, H) by distance from 1 - P to P - 1
BIAS_BY_DISTANCE = "relative_bias.by_distance"
# name of the sums (U * P, E) of position embeddings and each of U token types
POSITIONS_BY_TYPE = "embeddings.position_by_type"
_MERGED = ("embeddings.position.weight", "embeddings.token_type.weight", "relative_bias")


def attention_range(config: EncoderConfig, layer: int) -> str:
    """Return the attention range of a layer, EVERYTHING or WINDOW."""
    return WINDOW if layer in config.local_layers else EVERYTHING


def encoder_weights(
    model: TiedEncoder, max_tokens: int | None = None, token_types: int = 1
) -> dict[str, NDArray[np.float32]]:
    """Return the encoder's tensors and tables by name.

    The tables contain positions, rotary angles and the relative position bias.

    Args:
        max_tokens: number of positions to keep. None for all positions.
        token_types: number U of token types in the texts. With 1, all tokens have type 0.
    """
    config = model.config
    length = config.max_positions if max_tokens is None else max_tokens
    weights = {
        name: _array(tensor) for name, tensor in model.state_dict().items() if name not in _MERGED
    }
    positions = _position_embeddings(model.embeddings, length, 0)
    if positions is not None:
        weights[POSITIONS] = positions
    if token_types > 1:
        by_type = [
            _position_embeddings(model.embeddings, length, kind) for kind in range(token_types)
        ]
        weights[POSITIONS_BY_TYPE] = np.concatenate([one for one in by_type if one is not None])
    for kind in (EVERYTHING, WINDOW):
        frequencies = rotary_frequencies(config, local=kind == WINDOW)
        if frequencies is not None:
            cosines, sines = rotary_angles(length, *frequencies)
            weights[COSINES.format(kind)] = _array(cosines)
            weights[SINES.format(kind)] = _array(sines)
    if config.relative_buckets:
        buckets = relative_position_buckets(length, config.relative_buckets)
        weights[BIAS_BY_DISTANCE] = _array(model.relative_bias[buckets])
    return weights


def _position_embeddings(
    embeddings: Embeddings, length: int, token_type: int
) -> NDArray[np.float32] | None:
    """Sum the position embeddings and the embedding of a token type.

    Returns:
        The sum (P, E), or None for an encoder without position embeddings and token types.
    """
    table = embeddings.position_table()
    if not embeddings.config.type_vocab_size:
        return None if table is None else _array(table[:length])
    type_E = embeddings.token_type.weight[token_type]
    return _array(type_E.expand(length, -1) if table is None else table[:length] + type_E)


def _array(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.detach().float().cpu().numpy()
    return array
