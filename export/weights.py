"""An encoder's tensors as float32 arrays, ready for the graph builders."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from export.quantize import quantize_rows
from model.encoder import TiedEncoder

# matrices that stay float32 in an int8 bundle: looked up, not multiplied, and small
_LOOKUPS = ("embeddings.position.weight", "embeddings.token_type.weight")


def encoder_weights(model: TiedEncoder) -> dict[str, NDArray[np.float32]]:
    """Tensors by name; positions and token type 0 are merged into `embeddings.position`."""
    weights = {name: tensor.float().cpu().numpy() for name, tensor in model.state_dict().items()}
    positions = model.embeddings.position_table().detach().float().cpu().numpy()
    if model.config.type_vocab_size:
        positions = positions + weights["embeddings.token_type.weight"][0]
    return {n: w for n, w in weights.items() if n not in _LOOKUPS} | {
        "embeddings.position": positions
    }


@torch.no_grad()
def round_to_int8(model: TiedEncoder) -> None:
    """Replace every matrix by the values its int8 rows stand for, in place.

    The int8 graph must agree with this encoder as closely as the fp32 graph with the original, so
    that an error of the graph cannot hide behind the rounding of the weights.
    """
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2 and name not in _LOOKUPS:
            rounded = quantize_rows(parameter.float().cpu().numpy()).dequantized()
            parameter.copy_(torch.from_numpy(rounded))
