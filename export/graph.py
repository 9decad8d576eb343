"""The served graph: packed rows in, top-k fills out.

Shapes: R tokens of all texts end to end, N texts, T longest text, Q most masks of a text, M masks,
K most targets of a mask, D d_model, V vocabulary, E several projections side by side.

What makes it fast, all of it exact:
- Matrix products, norms and GELU run on the R real tokens. Padding exists only inside attention.
- The last block computes keys and values for every token, and everything else for the masks only.
- The key bias is dropped (softmax does not see it), the value bias is part of the output bias.
- The vocabulary projection sees M rows, and logits never leave the graph.
"""

from __future__ import annotations

import onnx

from export.operators import GraphBuilder, float_tensor, integer_tensor

OPSET = 24  # the first with Attention's nonpad_kv_seqlen


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

    for number in range(config.num_layers - 1):
        x_RD = _block(g, f"blocks.{number}", x_RD)
    x_MD = _last_block(g, f"blocks.{config.num_layers - 1}", x_RD)

    if config.final_norm:
        x_MD = g.norm(x_MD, "final_norm")
    if config.head_transform:
        x_MD = g.norm(g.gelu(g.linears(x_MD, ["head.dense"])), "head.norm")
    logits_MV = g.vocabulary(x_MD)
    log_probs_MV = g.add("LogSoftmax", [logits_MV], axis=-1)
    g.add("TopK", [log_probs_MV, "top_k"], ["top_log_probs", "top_ids"], axis=-1)
    g.add("GatherElements", [log_probs_MV, "target_ids"], ["target_log_probs"], axis=-1)
    return g.model(
        inputs=[
            integer_tensor("input_ids", "R"),
            integer_tensor("positions", "R"),
            integer_tensor("pad_index", "N", "T"),
            integer_tensor("unpad_index", "R"),
            integer_tensor("lengths", "N"),
            integer_tensor("query_index", "N", "Q"),
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


def _block(g: GraphBuilder, name: str, x_RD: str) -> str:
    """A block on all tokens."""
    source_RD = g.norm(x_RD, f"{name}.attention_norm") if _pre_norm(g) else x_RD
    parts = [f"{name}.{part}" for part in ("query", "key", "value")]
    projected_RE = g.linears(source_RD, parts)
    query, key, value = _split(g, g.add("Gather", [projected_RE, "pad_index"]), 3)
    mixed_NTD = _attention(g, query, key, value)
    mixed_RD = g.add("Gather", [_flat_rows(g, mixed_NTD), "unpad_index"])
    return _after_attention(g, name, x_RD, mixed_RD)


def _last_block(g: GraphBuilder, name: str, x_RD: str) -> str:
    """A block whose results are needed at the masks only."""
    source_RD = g.norm(x_RD, f"{name}.attention_norm") if _pre_norm(g) else x_RD
    source_SD = _flat_rows(g, g.add("Gather", [source_RD, "query_index"]))  # S = N * Q slots
    query_SD = g.linears(source_SD, [f"{name}.query"])
    slots = g.add("Concat", [g.add("Shape", ["query_index"]), g.integers(-1)], axis=0)
    query_NQD = g.add("Reshape", [query_SD, slots])
    projected_RE = g.linears(source_RD, [f"{name}.key", f"{name}.value"])
    key, value = _split(g, g.add("Gather", [projected_RE, "pad_index"]), 2)
    mixed_SD = _flat_rows(g, _attention(g, query_NQD, key, value))
    mixed_MD = g.add("Gather", [mixed_SD, "mask_slots"])
    residual_SD = source_SD
    if _pre_norm(g):
        residual_SD = _flat_rows(g, g.add("Gather", [x_RD, "query_index"]))
    residual_MD = g.add("Gather", [residual_SD, "mask_slots"])
    return _after_attention(g, name, residual_MD, mixed_MD)


def _attention(g: GraphBuilder, query: str, key_NTD: str, value_NTD: str) -> str:
    """Attention of padded queries (N, T or Q, D) over the real tokens of each text."""
    heads = g.config.num_heads
    # inputs 4 to 6 are an additive mask and a key-value cache: neither is needed
    inputs = [query, key_NTD, value_NTD, "", "", "", "lengths"]
    return g.add("Attention", inputs, q_num_heads=heads, kv_num_heads=heads)


def _after_attention(g: GraphBuilder, name: str, x: str, mixed: str) -> str:
    """Output projection, residuals and the feed-forward part, on any number of rows."""
    x = g.add("Add", [x, g.linears(mixed, [f"{name}.output"])])
    if _pre_norm(g):
        return g.add("Add", [x, _feed_forward(g, name, g.norm(x, f"{name}.ffn_norm"))])
    x = g.norm(x, f"{name}.attention_norm")
    return g.norm(g.add("Add", [x, _feed_forward(g, name, x)]), f"{name}.ffn_norm")


def _feed_forward(g: GraphBuilder, name: str, x: str) -> str:
    inner = g.gelu(g.linears(x, [f"{name}.ffn_in"]))
    return g.linears(inner, [f"{name}.ffn_out"], from_gelu=True)


def _split(g: GraphBuilder, x: str, parts: int) -> list[str]:
    """Equal parts of the last axis."""
    names = [f"{x}_{number}" for number in range(parts)]
    g.add("Split", [x], names, axis=-1, num_outputs=parts)
    return names


def _flat_rows(g: GraphBuilder, x: str) -> str:
    return g.add("Reshape", [x, g.integers(-1, g.config.d_model)])


def _pre_norm(g: GraphBuilder) -> bool:
    return g.config.norm_placement == "pre"
