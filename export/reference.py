"""The reference graph: portable, standard operators only, fp32.

`input_ids`, `attention_mask` (N, T) int64 and `mask_indicator` (N, T) float32 go in,
`logits` (M, V) come out, rows in row-major order of (sequence, position), M = 0 included.

Shapes: N batch, T tokens, D d_model, H heads, d head width, V vocabulary, M masked positions.
"""

from __future__ import annotations

import math

import numpy as np
import onnx
from numpy.typing import NDArray

from export.operators import GraphBuilder, float_tensor, integer_tensor
from model.config import EncoderConfig

OPSET = 17  # the first with LayerNormalization; six years of runtimes read it
MASKED_SCORE = -1e30  # finite, so that a row of padding alone gives no NaN


def reference_graph(
    config: EncoderConfig, weights: dict[str, NDArray[np.float32]]
) -> onnx.ModelProto:
    """Build the graph.

    Args:
        config: the encoder's sizes and choices.
        weights: its tensors, from `export.weights.encoder_weights`.
    """
    g = GraphBuilder(config, weights)
    tokens = g.add("Gather", [g.add("Shape", ["input_ids"]), g.integers(1)])
    positions_TD = g.add("Slice", [g.position_table(), g.integers(0), tokens])
    x_NTD = g.add("Add", [g.lookup("input_ids"), positions_TD])
    if config.embedding_norm:
        x_NTD = g.norm(x_NTD, "embeddings.norm")

    penalty_N11T = _padding_penalty(g)
    for number in range(config.num_layers):
        x_NTD = _block(g, f"blocks.{number}", x_NTD, penalty_N11T)

    threshold = g.constant("masked_above", np.array(0.5, np.float32))
    masked_2M = g.add("NonZero", [g.add("Greater", ["mask_indicator", threshold])])
    x_MD = g.add("GatherND", [x_NTD, g.add("Transpose", [masked_2M], perm=[1, 0])])
    if config.final_norm:
        x_MD = g.norm(x_MD, "final_norm")
    if config.head_transform:
        x_MD = g.norm(g.gelu_elementary(_linear(g, x_MD, "head.dense")), "head.norm")
    g.table_product(x_MD, ["logits"])
    return g.model(
        inputs=[
            integer_tensor("input_ids", "N", "T"),
            integer_tensor("attention_mask", "N", "T"),
            float_tensor("mask_indicator", "N", "T"),
        ],
        outputs=[float_tensor("logits", "M", config.vocab_size)],
        opset=OPSET,
    )


def _padding_penalty(g: GraphBuilder) -> str:
    """(N, 1, 1, T): zero for tokens, a very low score for padding."""
    padding = g.add("Equal", ["attention_mask", g.constant("zero", np.array(0, np.int64))])
    low = g.constant("masked_score", np.array(MASKED_SCORE, np.float32))
    none = g.constant("no_penalty", np.array(0, np.float32))
    penalty_NT = g.add("Where", [padding, low, none])
    return g.add("Unsqueeze", [penalty_NT, g.integers(1, 2)])


def _block(g: GraphBuilder, name: str, x: str, penalty: str) -> str:
    if g.config.norm_placement == "pre":
        x = g.add("Add", [x, _attention(g, name, g.norm(x, f"{name}.attention_norm"), penalty)])
        return g.add("Add", [x, _feed_forward(g, name, g.norm(x, f"{name}.ffn_norm"))])
    x = g.norm(g.add("Add", [x, _attention(g, name, x, penalty)]), f"{name}.attention_norm")
    return g.norm(g.add("Add", [x, _feed_forward(g, name, x)]), f"{name}.ffn_norm")


def _attention(g: GraphBuilder, name: str, x_NTD: str, penalty: str) -> str:
    heads, D = g.config.num_heads, g.config.d_model
    split = g.integers(0, 0, heads, D // heads)

    def part(which: str, perm: list[int]) -> str:
        projected = _linear(g, x_NTD, f"{name}.{which}")
        return g.add("Transpose", [g.add("Reshape", [projected, split])], perm=perm)

    query, value = part("query", [0, 2, 1, 3]), part("value", [0, 2, 1, 3])
    key_NHdT = part("key", [0, 2, 3, 1])
    scale = g.constant("attention_scale", np.array(1 / math.sqrt(D // heads), np.float32))
    scores = g.add("Mul", [g.add("MatMul", [query, key_NHdT]), scale])
    shares = g.add("Softmax", [g.add("Add", [scores, penalty])], axis=-1)
    mixed_NTHd = g.add("Transpose", [g.add("MatMul", [shares, value])], perm=[0, 2, 1, 3])
    mixed_NTD = g.add("Reshape", [mixed_NTHd, g.integers(0, 0, D)])
    return _linear(g, mixed_NTD, f"{name}.output")


def _feed_forward(g: GraphBuilder, name: str, x: str) -> str:
    return _linear(g, g.gelu_elementary(_linear(g, x, f"{name}.ffn_in")), f"{name}.ffn_out")


def _linear(g: GraphBuilder, x: str, name: str) -> str:
    """`x @ weight.T + bias` on (N, T, in); stored transposed, as MatMul wants it."""
    weight = g.constant(f"{name}.weight", g.weights[f"{name}.weight"].T)
    product = g.add("MatMul", [x, weight])
    bias = g.bias(f"{name}.bias")
    return product if bias is None else g.add("Add", [product, g.constant(f"{name}.bias", bias)])
