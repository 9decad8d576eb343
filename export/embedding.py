"""From tokens to the first block's input, as far as both graphs do it alike."""

from __future__ import annotations

import numpy as np

from export.operators import GraphBuilder
from model.encoder.embeddings import SEEN_IN_TRAINING


def without_masks(g: GraphBuilder, x: str, ids: str, seen: str) -> str:
    """Words with the masks taken out, and the others scaled up for it (`model.encoder.encoder`).

    Args:
        g: the graph so far.
        x: words, (..., E).
        ids: their tokens, (...).
        seen: of each token's text, the share of its tokens that are no masks, (..., 1).
    """
    masked = g.add("Unsqueeze", [is_mask(g, ids), g.integers(-1)])
    grown = g.add("Div", [g.scalar("seen_in_training", SEEN_IN_TRAINING), seen])
    scales = g.add("Where", [masked, g.scalar("nothing", 0), grown])
    return g.add("Mul", [x, scales])


def is_mask(g: GraphBuilder, ids: str) -> str:
    """Where a token is the one whose embedding is dropped: boolean, as the ids."""
    mask = g.constant("mask_token", np.array(g.config.token_dropout_id, np.int64))
    return g.add("Equal", [ids, mask])


def normed_and_widened(g: GraphBuilder, x: str) -> str:
    """Embeddings (..., E) to hidden states (..., D).

    Widened in float32, whatever the graph's precision: all else begins here, and it is little work.
    """
    if g.config.embedding_norm:
        x = g.norm(x, "embeddings.norm")
    if not g.config.embedding_size:
        return x
    name = "embeddings.projection"
    columns = g.constant(f"{name}.weight", g.weights[f"{name}.weight"].T)
    return g.add_bias(g.add("MatMul", [x, columns]), f"{name}.bias", g.bias(f"{name}.bias"))
