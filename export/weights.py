"""An encoder's tensors as float32 arrays, ready for the graph builders.

P is the number of positions kept, E the width of the table, d the width of a head, H heads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from model.encoder.config import EncoderConfig
from model.encoder.embeddings import Embeddings
from model.encoder.encoder import TiedEncoder
from model.encoder.positions import distance_buckets, rotations

# what positions and token type 0 add to every word: (P, E)
POSITIONS = "embeddings.position"
# by which attention turns queries and keys: (P, d/2) each, of layers by what they see
COSINES, SINES = "rotation.{}.cosine", "rotation.{}.sine"
EVERYTHING, WINDOW = "everything", "window"
# what attention adds to scores by distance: (2P - 1, H), from 1 - P to P - 1
BIAS_BY_DISTANCE = "relative_bias.by_distance"
_MERGED = ("embeddings.position.weight", "embeddings.token_type.weight", "relative_bias")


def seen_by(config: EncoderConfig, layer: int) -> str:
    """What a layer sees: EVERYTHING, or a WINDOW."""
    return WINDOW if layer in config.local_layers else EVERYTHING


def encoder_weights(
    model: TiedEncoder, max_tokens: int | None = None
) -> dict[str, NDArray[np.float32]]:
    """Tensors by name, and what follows from positions as tables.

    Args:
        model: the encoder.
        max_tokens: how many positions to keep; all by default.
    """
    config = model.config
    length = max_tokens or config.max_positions
    weights = {
        name: _array(tensor) for name, tensor in model.state_dict().items() if name not in _MERGED
    }
    added = _added_to_words(model.embeddings, length)
    if added is not None:
        weights[POSITIONS] = added
    bases = {EVERYTHING: config.rotary_base, WINDOW: config.local_rotary_base}
    for kind, base in bases.items():
        if base is not None:
            cosines, sines = rotations(length, config.head_width, base)
            weights[COSINES.format(kind)] = _array(cosines)
            weights[SINES.format(kind)] = _array(sines)
    if config.relative_buckets:
        buckets = distance_buckets(length, config.relative_buckets)
        weights[BIAS_BY_DISTANCE] = _array(model.relative_bias[buckets])
    return weights


def _added_to_words(embeddings: Embeddings, length: int) -> NDArray[np.float32] | None:
    """(P, E), or None where words are all there is: every token of a fill has type 0."""
    table = embeddings.position_table()
    if not embeddings.config.type_vocab_size:
        return None if table is None else _array(table[:length])
    type_0 = embeddings.token_type.weight[0]
    return _array(type_0.expand(length, -1) if table is None else table[:length] + type_0)


def _array(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.detach().float().cpu().numpy()
    return array
