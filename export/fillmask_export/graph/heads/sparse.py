"""Pooling of logits to one sparse vector per text, at the end of the served graph.

A loop over the texts contains a loop over blocks of rows. Each block of rows is multiplied by one
block of columns after the other, so that the logits stay in the CPU's cache. The logits of all
tokens of a text are never in memory.

Shapes: C tokens of all texts that the head reads, N texts, D d_model, V vocabulary.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from fillmask_export.graph.operators import GraphBuilder
from fillmask_export.graph.value_types import float_tensor, integer_tensor
from fillmask_model.encoder.sparse import SparsePooling

ROWS, COLUMNS = 256, 2048  # sizes of a block of logits
HALVINGS = 3  # how often the rows of a block are halved by their maxima
LENGTHS = "sparse_lengths"


def sparse_weights(g: GraphBuilder, x_CD: str, pooling: SparsePooling) -> None:
    """Add the output `sparse_weights` (N, V).

    The graph must have the input `sparse_lengths` with the number of rows of each text.

    Args:
        x_CD: outputs of the head, ordered by text.
    """
    lowest = np.full(1, -np.inf if pooling.strategy == "max" else 0, np.float32)
    shape_1V = g.integers(1, g.config.vocab_size)
    nothing = g.add("ConstantOfShape", [shape_1V], value=numpy_helper.from_array(lowest))
    starts = range(0, g.config.vocab_size, COLUMNS)
    parts = [slice(s, min(s + COLUMNS, g.config.vocab_size)) for s in starts]
    columns = dict(zip(g.columns(parts), parts, strict=True))
    inputs = [*_counters("text", "go_on"), integer_tensor("start", 1)]
    outputs = [
        helper.make_tensor_value_info("go_on_after", TensorProto.BOOL, []),
        integer_tensor("end", 1),
        float_tensor("weights", g.config.vocab_size),
    ]
    with g.subgraph(inputs, outputs) as body:
        g.add("Identity", ["go_on"], ["go_on_after"])
        length = g.add("Gather", [LENGTHS, g.add("Reshape", ["text", g.integers(1)])])
        g.add("Add", ["start", length], ["end"])
        pooled = _pool_text(g, x_CD, pooling, columns, length, nothing)
        if pooling.strategy == "max":
            # after the maximum, because bias and activation keep the order of the rows
            pooled = _activate(g, _add_bias(g, pooled), pooling)
        g.add("Reshape", [pooled, g.integers(g.config.vocab_size)], ["weights"])
    texts = g.add("Reshape", [g.add("Shape", [LENGTHS]), g.integers()])
    g.add("Loop", [texts, "", g.integers(0)], ["end_of_last", "sparse_weights"], body=body)


def _pool_text(
    g: GraphBuilder,
    x_CD: str,
    pooling: SparsePooling,
    columns: dict[str, slice],
    length: str,
    nothing: str,
) -> str:
    """Pool the logits (1, V) of the rows from `start` to `end`.

    Args:
        columns: parts of the table (`GraphBuilder.columns`) with their rows.
        length: number of the rows.
        nothing: pooled logits (1, V) of no rows.
    """
    rounds = g.add("Div", [g.add("Add", [length, g.integers(ROWS - 1)]), g.integers(ROWS)])
    before = float_tensor("pooled_before", 1, g.config.vocab_size)
    outputs = [
        helper.make_tensor_value_info("more_after", TensorProto.BOOL, []),
        float_tensor("pooled_after", 1, g.config.vocab_size),
    ]
    with g.subgraph([*_counters("round", "more"), before], outputs) as body:
        g.add("Identity", ["more"], ["more_after"])
        round_1 = g.add("Reshape", ["round", g.integers(1)])
        first = g.add("Add", ["start", g.add("Mul", [round_1, g.integers(ROWS)])])
        last = g.add("Min", ["end", g.add("Add", [first, g.integers(ROWS)])])
        if pooling.strategy == "max":
            x = _repeat_last_row(g, x_CD, first, last)
            products = g.column_products(x, x, list(columns))
            pooled = g.add("Concat", [_largest(g, one) for one in products], axis=1)
            g.add("Max", ["pooled_before", pooled], ["pooled_after"])
        else:
            x = g.add("Slice", [x_CD, first, last, g.integers(0)])
            products = g.column_products(x, x, list(columns))
            logits = map(partial(_add_bias, g), products, columns.values())
            weights = [_activate(g, one, pooling) for one in logits]
            sums = [g.add("ReduceSum", [one, g.integers(0)], keepdims=1) for one in weights]
            g.add("Add", ["pooled_before", g.add("Concat", sums, axis=1)], ["pooled_after"])
    rounds = g.add("Reshape", [rounds, g.integers()])
    return g.add("Loop", [rounds, "", nothing], ["pooled"], body=body)


def _repeat_last_row(g: GraphBuilder, x_CD: str, first: str, last: str) -> str:
    """Gather rows, and the last row again until their number is a multiple of 2 ** HALVINGS."""
    multiple = 2**HALVINGS
    count = g.add("Sub", [last, first])
    rounded = g.add("Add", [count, g.integers(multiple - 1)])
    rounded = g.add("Mul", [g.add("Div", [rounded, g.integers(multiple)]), g.integers(multiple)])
    ends = [
        g.add("Reshape", [one, g.integers()]) for one in (first, g.add("Add", [first, rounded]))
    ]
    places = g.add("Range", [*ends, g.add("Reshape", [g.integers(1), g.integers()])])
    return g.add("Gather", [x_CD, g.add("Min", [places, g.add("Sub", [last, g.integers(1)])])])


def _largest(g: GraphBuilder, logits: str) -> str:
    """Compute the maximum of each column.

    ReduceMax over the first axis takes three times as long as the maxima of halves.
    """
    for _ in range(HALVINGS):
        halves = [f"half_{g.next_number()}" for _ in range(2)]
        g.add("Split", [logits], halves, axis=0, num_outputs=2)
        logits = g.add("Max", halves)
    return g.add("ReduceMax", [logits, g.integers(0)], keepdims=1)


def _counters(number: str, condition: str) -> list[onnx.ValueInfoProto]:
    return [
        helper.make_tensor_value_info(number, TensorProto.INT64, []),
        helper.make_tensor_value_info(condition, TensorProto.BOOL, []),
    ]


def _add_bias(g: GraphBuilder, logits: str, part: slice = slice(None)) -> str:
    name = "head_bias" if part.start is None else f"head_bias.{part.start}"
    bias = g.bias("head_bias")
    return g.add_bias(logits, name, None if bias is None else bias[part])


def _activate(g: GraphBuilder, logits: str, pooling: SparsePooling) -> str:
    weights = g.add("Relu", [logits])
    for _ in range(pooling.logarithms):
        weights = g.add("Log", [g.add("Add", [weights, g.scalar("one", 1.0)])])
    return weights
