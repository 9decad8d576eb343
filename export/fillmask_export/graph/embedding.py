"""Parts of the input embedding in the served graph and in the reference graph."""

from __future__ import annotations

import numpy as np

from fillmask_export.graph.operators import GraphBuilder
from fillmask_model.encoder.embeddings import UNMASKED_IN_TRAINING


def token_dropout(g: GraphBuilder, x: str, ids: str, unmasked: str) -> str:
    """Set the embeddings of masks to zero and rescale all other embeddings.

    `fillmask_model.encoder.embeddings` explains the scale.

    Args:
        x: (..., E) word embeddings.
        ids: (...) token ids.
        unmasked: (..., 1) share of unmasked tokens in each token's text.
    """
    masked = g.add("Unsqueeze", [is_mask(g, ids), g.integers(-1)])
    scaled_up = g.add("Div", [g.scalar("seen_in_training", UNMASKED_IN_TRAINING), unmasked])
    scales = g.add("Where", [masked, g.scalar("nothing", 0), scaled_up])
    return g.add("Mul", [x, scales])


def is_mask(g: GraphBuilder, ids: str) -> str:
    mask = g.constant("mask_token", np.array(g.config.token_dropout_id, np.int64))
    return g.add("Equal", [ids, mask])


def norm_and_project(g: GraphBuilder, x: str) -> str:
    """Normalise and project embeddings (..., E) to hidden states (..., D).

    The projection is always float32, because it is small and every layer depends on it.
    """
    if g.config.embedding_norm:
        x = g.norm(x, "embeddings.norm")
    if not g.config.embedding_size:
        return x
    name = "embeddings.projection"
    columns = g.constant(f"{name}.weight", g.weights[f"{name}.weight"].T)
    return g.add_bias(g.add("MatMul", [x, columns]), f"{name}.bias", g.bias(f"{name}.bias"))
