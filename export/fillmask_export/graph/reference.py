"""Reference graph in fp32 with standard operators only.

The inputs are `input_ids` (N, T) int64, `attention_mask` (N, T) int64 and `mask_indicator` (N, T)
float32. The output is `logits` (M, V) with rows in row-major order of (sequence, position). M may
be 0.

Shapes: N batch, T tokens, D d_model, H heads, d head width, V vocabulary, M masked positions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto

from fillmask_export.graph.nodes import float_tensor, integer_tensor
from fillmask_export.graph.operators import GraphBuilder
from fillmask_export.graph.weights import BIAS_BY_DISTANCE, COSINES, SINES, WINDOW, attention_range
from fillmask_model.encoder.config import EncoderConfig

OPSET = 17  # the first opset with LayerNormalization, which runtimes since 2022 support
MASKED_SCORE = -1e30  # finite instead of minus infinity, to avoid NaN in a row of padding


def reference_graph(
    config: EncoderConfig, weights: dict[str, NDArray[np.float32]]
) -> onnx.ModelProto:
    """Build the reference graph.

    Args:
        weights: tensors of the encoder, from `fillmask_export.graph.weights.encoder_weights`.
    """
    g = _ElementaryBuilder(config, weights)
    tokens = g.add("Gather", [g.add("Shape", ["input_ids"]), g.integers(1)])
    x_NTD = _embeddings(g, tokens)
    contexts = _AttentionContexts(g, tokens)
    for layer, block in enumerate(config.layers):
        x_NTD = _block(g, f"blocks.{block}", x_NTD, contexts.of(attention_range(config, layer)))

    threshold = g.constant("masked_above", np.array(0.5, np.float32))
    masked_2M = g.add("NonZero", [g.add("Greater", ["mask_indicator", threshold])])
    x_MD = g.add("GatherND", [x_NTD, g.add("Transpose", [masked_2M], perm=[1, 0])])
    if config.final_norm:
        x_MD = g.norm(x_MD, "final_norm")
    x_MD = g.head_transform(x_MD, "")
    g.table_logits(x_MD, ["logits"])
    return g.model(
        inputs=[
            integer_tensor("input_ids", "N", "T"),
            integer_tensor("attention_mask", "N", "T"),
            float_tensor("mask_indicator", "N", "T"),
        ],
        outputs=[float_tensor("logits", "M", config.vocab_size)],
        opset=OPSET,
    )


class _ElementaryBuilder(GraphBuilder):
    """Graph builder with operators that runtimes without opset 20 have."""

    def linears(self, x: str, names: Sequence[str], rows: str) -> list[str]:  # noqa: ARG002 - the int8 builder needs rows
        """Compute `x @ weight.T` with the bias, if any, for an input (N, T, in).

        The graph stores the transposed weights, because MatMul cannot transpose them.
        """
        outputs = []
        for name in names:
            weight = self.constant(f"{name}.weight", self.weights[f"{name}.weight"].T)
            product, bias = self.add("MatMul", [x, weight]), self.bias(f"{name}.bias")
            if bias is not None:
                product = self.add("Add", [product, self.constant(f"{name}.bias", bias)])
            outputs.append(product)
        return outputs

    def norm(self, x: str, name: str) -> str:
        if self.config.norm_kind != "rms":
            return super().norm(x, name)
        mean = self.add("ReduceMean", [self.add("Mul", [x, x])], axes=[-1])
        size = self.add("Sqrt", [self.add("Add", [mean, self.scalar("eps", self.config.norm_eps)])])
        return self.add("Mul", [self.add("Div", [x, size]), self.norm_scale(name)])

    def activate(self, x: str, activation: str) -> str:
        if activation not in {"gelu_tanh", "gelu_erf"}:
            return super().activate(x, activation)
        half = self.scalar("half", 0.5)
        one = self.scalar("one", 1.0)
        if activation == "gelu_tanh":
            cube = self.add("Mul", [self.add("Mul", [x, x]), x])
            bent = self.add("Mul", [cube, self.scalar("gelu_cubic", 0.044715)])
            scale = self.scalar("sqrt_2_over_pi", math.sqrt(2 / math.pi))
            curve = self.add("Tanh", [self.add("Mul", [self.add("Add", [x, bent]), scale])])
        else:
            scale = self.scalar("sqrt_half", math.sqrt(0.5))
            curve = self.add("Erf", [self.add("Mul", [x, scale])])
        return self.add("Mul", [self.add("Mul", [x, half]), self.add("Add", [curve, one])])


def _embeddings(g: GraphBuilder, tokens: str) -> str:
    """Embed tokens as (N, T, D)."""
    x_NTE = g.lookup("input_ids")
    if g.config.token_dropout_id is not None:
        masked_NT = g.add("Cast", [g.is_mask("input_ids")], to=TensorProto.FLOAT)
        real_NT = g.add("Cast", ["attention_mask"], to=TensorProto.FLOAT)
        masks_N1, tokens_N1 = (
            g.add("ReduceSum", [x_NT, g.integers(1)], keepdims=1) for x_NT in (masked_NT, real_NT)
        )
        share_N1 = g.add("Div", [masks_N1, tokens_N1])
        unmasked_N1 = g.add("Sub", [g.scalar("all", 1), share_N1])
        unmasked_N11 = g.add("Unsqueeze", [unmasked_N1, g.integers(-1)])
        x_NTE = g.token_dropout(x_NTE, "input_ids", unmasked_N11)
    table = g.position_table()
    if table is not None:
        positions_TE = g.add("Slice", [table, g.integers(0), tokens])
        x_NTE = g.add("Add", [x_NTE, positions_TE])
    return g.norm_and_project(x_NTE)


class _AttentionContext(NamedTuple):
    """Score bias and rotary angles of a layer's attention.

    Attributes:
        score_bias: bias that broadcasts to (N, H, T, T).
        angles: cosines and sines (T, d/2). None without rotary embeddings.
    """

    score_bias: str
    angles: tuple[str, str] | None


class _AttentionContexts:
    """Attention contexts, which layers with the same attention range share."""

    def __init__(self, g: GraphBuilder, tokens: str) -> None:
        self._g, self._tokens = g, tokens
        self.of = cache(self._of)

    def _of(self, kind: str) -> _AttentionContext:
        return _AttentionContext(self._score_bias(kind), self._angles(kind))

    def _score_bias(self, kind: str) -> str:
        g = self._g
        low, none = g.scalar("masked_score", MASKED_SCORE), g.scalar("no_penalty", 0)
        padding_NT = g.add("Equal", ["attention_mask", g.constant("zero", np.array(0, np.int64))])
        masked = g.add("Unsqueeze", [padding_NT, g.integers(1, 2)])
        if kind == WINDOW:
            window = g.integers(g.config.local_window)
            far_TT = g.add("Greater", [g.add("Abs", [self._distance()]), window])
            masked = g.add("Or", [masked, far_TT])
        bias = g.add("Where", [masked, low, none])
        if not g.config.relative_buckets:
            return bias
        middle = len(g.weights[BIAS_BY_DISTANCE]) // 2
        index = g.add("Add", [self._distance(), g.integers(middle)])
        bias_TTH = g.add("Gather", [g.weight(BIAS_BY_DISTANCE), index])
        return g.add("Add", [g.add("Transpose", [bias_TTH], perm=[2, 0, 1]), bias])

    def _angles(self, kind: str) -> tuple[str, str] | None:
        g = self._g
        if g.config.rotary_base is None:
            return None
        cosine, sine = (
            g.add("Slice", [g.weight(name.format(kind)), g.integers(0), self._tokens])
            for name in (COSINES, SINES)
        )
        return cosine, sine

    def _distance(self) -> str:
        """Compute the key position minus the query position as (T, T)."""
        g = self._g
        first, step = (g.constant(f"{n}", np.array(n, np.int64)) for n in (0, 1))
        count = g.add("Reshape", [self._tokens, g.integers()])
        position_T = g.add("Range", [first, count, step])
        return g.add("Sub", [position_T, g.add("Unsqueeze", [position_T, g.integers(1)])])


def _block(g: GraphBuilder, name: str, x: str, context: _AttentionContext) -> str:
    mixed = _attention(g, name, g.attention_input(x, name), context)
    return g.after_attention(x, mixed, name, "")


def _attention(g: GraphBuilder, name: str, x_NTD: str, context: _AttentionContext) -> str:
    """Mix the values (N, T, D) of the tokens."""
    heads, d = g.config.num_heads, g.config.head_width
    split = g.integers(0, 0, heads, d)

    def part(which: str) -> str:
        projected = g.linear(x_NTD, f"{name}.{which}", "")
        if g.config.query_key_norm and which != "value":
            projected = g.norm(projected, f"{name}.{which}_norm")
        x_NHTd = g.add("Transpose", [g.add("Reshape", [projected, split])], perm=[0, 2, 1, 3])
        turns = context.angles is not None and which != "value"
        return _rotated(g, x_NHTd, context) if turns else x_NHTd

    query, key, value = part("query"), part("key"), part("value")
    key_NHdT = g.add("Transpose", [key], perm=[0, 1, 3, 2])
    scores = g.add("MatMul", [query, key_NHdT])
    scores = g.add("Mul", [scores, g.scalar("attention_scale", 1 / math.sqrt(d))])
    shares = g.add("Softmax", [g.add("Add", [scores, context.score_bias])], axis=-1)
    mixed_NTHd = g.add("Transpose", [g.add("MatMul", [shares, value])], perm=[0, 2, 1, 3])
    return g.add("Reshape", [mixed_NTHd, g.integers(0, 0, g.config.d_model)])


def _rotated(g: GraphBuilder, x_NHTd: str, context: _AttentionContext) -> str:
    """Rotate each pair of channels (i, i + d/2) by the angle of the token's position."""
    assert context.angles is not None  # noqa: S101 - the caller has checked it
    cosine, sine = context.angles
    half = g.config.head_width // 2
    first, second = (
        g.add("Slice", [x_NHTd, g.integers(start), g.integers(start + half), g.integers(-1)])
        for start in (0, half)
    )
    rotated = [
        g.add(sum_or_difference, [g.add("Mul", [one, cosine]), g.add("Mul", [other, sine])])
        for sum_or_difference, one, other in (("Sub", first, second), ("Add", second, first))
    ]
    return g.add("Concat", rotated, axis=-1)
