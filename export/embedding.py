"""Parts of the input embedding that both graphs share."""

from __future__ import annotations

import numpy as np

from export.operators import GraphBuilder
from model.encoder.embeddings import UNMASKED_IN_TRAINING


def token_dropout(g: GraphBuilder, x: str, ids: str, unmasked: str) -> str:
    """Set embeddings of masks to zero and scale the others up (`model.encoder.embeddings`).

    Args:
        g: builder of the graph.
        x: word embeddings (..., E).
        ids: token ids (...).
        unmasked: share of unmasked tokens in each token's text, (..., 1).
    """
    masked = g.add("Unsqueeze", [is_mask(g, ids), g.integers(-1)])
    scaled_up = g.add("Div", [g.scalar("seen_in_training", UNMASKED_IN_TRAINING), unmasked])
    scales = g.add("Where", [masked, g.scalar("nothing", 0), scaled_up])
    return g.add("Mul", [x, scales])


def is_mask(g: GraphBuilder, ids: str) -> str:
    """Compare ids with the mask token: boolean, of the same shape."""
    mask = g.constant("mask_token", np.array(g.config.token_dropout_id, np.int64))
    return g.add("Equal", [ids, mask])


def norm_and_project(g: GraphBuilder, x: str) -> str:
    """Normalise and project embeddings (..., E) to hidden states (..., D).

    The projection is float32 in every precision: every layer depends on it, and it is little work.
    """
    if g.config.embedding_norm:
        x = g.norm(x, "embeddings.norm")
    if not g.config.embedding_size:
        return x
    name = "embeddings.projection"
    columns = g.constant(f"{name}.weight", g.weights[f"{name}.weight"].T)
    return g.add_bias(g.add("MatMul", [x, columns]), f"{name}.bias", g.bias(f"{name}.bias"))
