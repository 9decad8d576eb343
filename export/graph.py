"""Served graph, which maps packed texts to their top-k fills.

Shapes: R tokens of all texts, B rows of W slots inside attention, Q maximum masks per row,
S = B * Q, N texts, M masks, K maximum targets per mask, D d_model, E width of the table,
V vocabulary.

Exact optimisations:
- Matrix products, norms and GELU run on the R real tokens. Only attention has padding. Short texts
  share a row of slots, and the attention mask separates them.
- The last block computes only keys and values for all tokens. The rest of the block runs only for
  masks.
- Softmax cancels the key bias of most encoders, so the graph omits it. The output bias contains the
  value bias.
- The output projection runs on M rows. Logits never leave the graph.
"""

from __future__ import annotations

import onnx

from export.attention import Attention
from export.embedding import is_mask, norm_and_project, token_dropout
from export.operators import GraphBuilder, float_tensor, integer_tensor
from export.ranking import rank

OPSET = 24
FLOAT = onnx.TensorProto.FLOAT
QKV = ("query", "key", "value")
# names of an input with one entry per token and of an input with one entry per mask
TOKENS, MASKS = "input_ids", "mask_slots"


def served_graph(g: GraphBuilder) -> onnx.ModelProto:
    """Build the graph that `service.engine.runtime` runs.

    Args:
        g: graph builder for fp32 or int8, with the weights of `export.weights`.
    """
    config = g.config
    x_RD = _embeddings(g)
    attention = Attention(g)
    for layer in range(config.num_layers - 1):
        x_RD = _block(g, attention, layer, x_RD)
    x_MD = _last_block(g, attention, config.num_layers - 1, x_RD)

    if config.final_norm:
        x_MD = g.norm(x_MD, "final_norm")
    if config.head_transform:
        x_MD = g.norm(g.gelu(g.linear(x_MD, "head.dense", MASKS), head=True), "head.norm")
    rank(g, x_MD, MASKS)
    return g.model(
        inputs=[
            integer_tensor("input_ids", "R"),
            integer_tensor("positions", "R"),
            integer_tensor("pad_index", "B", "W"),
            integer_tensor("slot_texts", "B", "W"),
            integer_tensor("unpad_index", "R"),
            integer_tensor("query_index", "B", "Q"),
            integer_tensor("query_texts", "B", "Q"),
            integer_tensor("mask_slots", "M"),
            integer_tensor("top_k", 1),
            integer_tensor("target_ids", "M", "K"),
        ],
        outputs=[
            integer_tensor("top_ids", "M", "k"),
            float_tensor("top_log_probs", "M", "k"),
            float_tensor("target_log_probs", "M", "K"),
        ],
        opset=OPSET,
    )


def _embeddings(g: GraphBuilder) -> str:
    """Embed tokens as (R, D)."""
    x_RE = g.lookup("input_ids")
    if g.config.token_dropout_id is not None:
        x_RE = token_dropout(g, x_RE, "input_ids", _unmasked_share(g))
    table = g.position_table()
    if table is not None:
        x_RE = g.add("Add", [x_RE, g.add("Gather", [table, "positions"])])
    return norm_and_project(g, x_RE)


def _unmasked_share(g: GraphBuilder) -> str:
    """Compute the share (R, 1) of unmasked tokens in each token's text."""
    text_R = g.add("Gather", [g.add("Reshape", ["slot_texts", g.integers(-1)]), "unpad_index"])
    tokens_R = g.add("Cast", [g.add("GreaterOrEqual", [text_R, g.integers(0)])], to=FLOAT)
    masks_R = g.add("Cast", [is_mask(g, "input_ids")], to=FLOAT)
    zeros_R = g.add("Sub", [tokens_R, tokens_R])  # R rows suffice, because N is at most R
    masks_N, tokens_N = (
        g.add("ScatterElements", [zeros_R, text_R, x_R], axis=0, reduction="add")
        for x_R in (masks_R, tokens_R)
    )
    masked_N = g.add("Div", [masks_N, tokens_N])
    unmasked_R = g.add("Sub", [g.scalar("all", 1), g.add("Gather", [masked_N, text_R])])
    return g.add("Unsqueeze", [unmasked_R, g.integers(-1)])


def _block(g: GraphBuilder, attention: Attention, layer: int, x_RD: str) -> str:
    """Add a block that computes hidden states of all tokens."""
    name = f"blocks.{g.config.layers[layer]}"
    source_RD = g.attention_input(x_RD, name)
    query, key, value = g.linears(source_RD, [f"{name}.{part}" for part in QKV], TOKENS)
    query, key = (attention.rotated(x, layer) for x in (query, key))
    query, key, value = _pad(g, [query, key, value])
    mixed_BWD = attention.attend_all(query, key, value, layer)
    mixed_RD = g.add("Gather", [_flat_rows(g, mixed_BWD), "unpad_index"])
    return _after_attention(g, name, x_RD, mixed_RD, TOKENS)


def _last_block(g: GraphBuilder, attention: Attention, layer: int, x_RD: str) -> str:
    """Add the last block, which computes hidden states of only the masks."""
    name = f"blocks.{g.config.layers[layer]}"
    source_RD = g.attention_input(x_RD, name)
    slots_S = g.add("Reshape", ["query_index", g.integers(-1)])
    query_SD = g.linear(g.add("Gather", [source_RD, slots_S]), f"{name}.query", slots_S)
    query_SD = attention.rotated(query_SD, layer, slots_S)
    shape = g.add("Concat", [g.add("Shape", ["query_index"]), g.integers(-1)], axis=0)
    query_BQD = g.add("Reshape", [query_SD, shape])
    key, value = g.linears(source_RD, [f"{name}.{part}" for part in QKV[1:]], TOKENS)
    key, value = _pad(g, [attention.rotated(key, layer), value])
    mixed_BQD = attention.attend_from(query_BQD, key, value, attention.mask_slots(), layer)
    mixed_MD = g.add("Gather", [_flat_rows(g, mixed_BQD), MASKS])
    x_MD = g.add("Gather", [x_RD, g.add("Gather", [slots_S, MASKS])])
    return _after_attention(g, name, x_MD, mixed_MD, MASKS)


def _pad(g: GraphBuilder, packed: list[str]) -> list[str]:
    """Pad tensors (R, D) to (B, W, D)."""
    return [g.add("Gather", [x_RD, "pad_index"]) for x_RD in packed]


def _after_attention(g: GraphBuilder, name: str, x: str, mixed: str, rows: str) -> str:
    """Add the part of a block after attention."""
    x = g.add("Add", [x, g.linear(mixed, f"{name}.output", rows)])
    if g.config.norm_placement == "pre":
        return g.add("Add", [x, g.feed_forward(g.norm(x, f"{name}.ffn_norm"), name, rows)])
    x = g.norm(x, f"{name}.attention_norm")
    return g.norm(g.add("Add", [x, g.feed_forward(x, name, rows)]), f"{name}.ffn_norm")


def _flat_rows(g: GraphBuilder, x: str) -> str:
    return g.add("Reshape", [x, g.integers(-1, g.config.d_model)])
