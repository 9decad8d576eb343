"""The served graph: packed rows in, top-k fills out.

Shapes: R tokens of all texts end to end, B rows of W slots inside attention, Q most masks of a row,
S = B * Q, M masks, K most targets of a mask, D d_model, V vocabulary.

What makes it fast, all of it exact:
- Matrix products, norms and GELU run on the R real tokens. Padding exists only inside attention,
  where short texts share a row of slots, and a mask keeps them apart.
- The last block computes keys and values for every token, and everything else for the masks only.
- The key bias is dropped (softmax does not see it), the value bias is part of the output bias.
- The vocabulary projection sees M rows, and logits never leave the graph.
"""

from __future__ import annotations

import onnx

from export.operators import GraphBuilder, float_tensor, integer_tensor
from export.ranking import rank

OPSET = 24
NEVER = -1e30  # added to a score, it leaves a weight of exactly 0
# inputs with one entry a token, and one a mask
TOKENS, MASKS = "input_ids", "mask_slots"


def served_graph(g: GraphBuilder) -> onnx.ModelProto:
    """Build the graph `service.runtime` runs.

    Args:
        g: a builder in the precision wanted, with the weights of `export.weights`.
    """
    config = g.config
    positions_RD = g.add("Gather", [g.position_table(), "positions"])
    x_RD = g.add("Add", [g.lookup("input_ids"), positions_RD])
    if config.embedding_norm:
        x_RD = g.norm(x_RD, "embeddings.norm")

    same_text_BWW = _same_text(g, "slot_texts")
    for number in range(config.num_layers - 1):
        x_RD = _block(g, f"blocks.{number}", x_RD, same_text_BWW)
    x_MD = _last_block(g, f"blocks.{config.num_layers - 1}", x_RD)

    if config.final_norm:
        x_MD = g.norm(x_MD, "final_norm")
    if config.head_transform:
        x_MD = g.norm(g.gelu(g.linear(x_MD, "head.dense", MASKS)), "head.norm")
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


def _same_text(g: GraphBuilder, queries: str) -> str:
    """(B, 1, W or Q, W): what attention adds to scores, 0 between slots of the same text."""
    asking = g.add("Unsqueeze", [queries, g.integers(1, 3)])
    asked = g.add("Unsqueeze", ["slot_texts", g.integers(1, 2)])
    same = g.add("Equal", [asking, asked])
    # finite, so that an unused query gives numbers, which nothing reads
    return g.add("Where", [same, g.scalar("zero", 0), g.scalar("never", NEVER)])


def _block(g: GraphBuilder, name: str, x_RD: str, same_text: str) -> str:
    """A block on all tokens."""
    source_RD = g.norm(x_RD, f"{name}.attention_norm") if _pre_norm(g) else x_RD
    parts = [f"{name}.{part}" for part in ("query", "key", "value")]
    query, key, value = _pad(g, g.linears(source_RD, parts, TOKENS))
    mixed_BWD = _attention(g, query, key, value, same_text)
    mixed_RD = g.add("Gather", [_flat_rows(g, mixed_BWD), "unpad_index"])
    return _after_attention(g, name, x_RD, mixed_RD, TOKENS)


def _last_block(g: GraphBuilder, name: str, x_RD: str) -> str:
    """A block whose results are needed at the masks only."""
    source_RD = g.norm(x_RD, f"{name}.attention_norm") if _pre_norm(g) else x_RD
    slots_S = g.add("Reshape", ["query_index", g.integers(-1)])
    query_SD = g.linear(g.add("Gather", [source_RD, slots_S]), f"{name}.query", slots_S)
    shape = g.add("Concat", [g.add("Shape", ["query_index"]), g.integers(-1)], axis=0)
    query_BQD = g.add("Reshape", [query_SD, shape])
    parts = [f"{name}.{part}" for part in ("key", "value")]
    key, value = _pad(g, g.linears(source_RD, parts, TOKENS))
    same_text = _same_text(g, "query_texts")
    mixed_SD = _flat_rows(g, _attention(g, query_BQD, key, value, same_text))
    mixed_MD = g.add("Gather", [mixed_SD, MASKS])
    x_MD = g.add("Gather", [x_RD, g.add("Gather", [slots_S, MASKS])])
    return _after_attention(g, name, x_MD, mixed_MD, MASKS)


def _pad(g: GraphBuilder, packed: list[str]) -> list[str]:
    """(R, D) to (B, W, D), each."""
    return [g.add("Gather", [x_RD, "pad_index"]) for x_RD in packed]


def _attention(g: GraphBuilder, query: str, key_BWD: str, value_BWD: str, same_text: str) -> str:
    """Attention of queries (B, W or Q, D) over the slots of their own text."""
    heads = g.config.num_heads
    inputs = [query, key_BWD, value_BWD, same_text]
    return g.add("Attention", inputs, q_num_heads=heads, kv_num_heads=heads)


def _after_attention(g: GraphBuilder, name: str, x: str, mixed: str, rows: str) -> str:
    """Output projection, residuals and the feed-forward part, on any number of rows."""
    x = g.add("Add", [x, g.linear(mixed, f"{name}.output", rows)])
    if _pre_norm(g):
        return g.add("Add", [x, g.feed_forward(g.norm(x, f"{name}.ffn_norm"), name, rows)])
    x = g.norm(x, f"{name}.attention_norm")
    return g.norm(g.add("Add", [x, g.feed_forward(x, name, rows)]), f"{name}.ffn_norm")


def _flat_rows(g: GraphBuilder, x: str) -> str:
    return g.add("Reshape", [x, g.integers(-1, g.config.d_model)])


def _pre_norm(g: GraphBuilder) -> bool:
    return g.config.norm_placement == "pre"
