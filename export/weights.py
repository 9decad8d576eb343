"""An encoder's tensors as float32 arrays, ready for the graph builders."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from model.encoder import TiedEncoder


def encoder_weights(
    model: TiedEncoder, max_tokens: int | None = None
) -> dict[str, NDArray[np.float32]]:
    """Tensors by name; positions and token type 0 are merged into `embeddings.position`.

    Args:
        model: the encoder.
        max_tokens: how many positions to keep; all by default.
    """
    weights = {name: tensor.float().cpu().numpy() for name, tensor in model.state_dict().items()}
    positions = model.embeddings.position_table()[:max_tokens].detach().float().cpu().numpy()
    if model.config.type_vocab_size:
        positions = positions + weights["embeddings.token_type.weight"][0]
    merged = ("embeddings.position.weight", "embeddings.token_type.weight")
    rest = {name: tensor for name, tensor in weights.items() if name not in merged}
    return rest | {"embeddings.position": positions}
