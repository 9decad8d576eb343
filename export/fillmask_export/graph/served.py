"""Served graph, which maps packed texts to fills, to logits of labels or to sparse vectors.

Shapes: R tokens of all texts, B rows of W slots inside attention, Q maximum tokens per row that a
head reads, S = B * Q, N texts, M masks, C tokens that the classification head reads, K maximum
targets per mask, k top tokens per mask, D d_model, E width of the table.

Optimisations that do not change the results:
- Matrix products, norms and GELU run on the R real tokens. Only attention has padding. Short texts
  share a row of slots. The attention mask separates these texts.
- The last block computes only keys and values for all tokens. The rest of the block runs only for
  the tokens that a head reads.
- Softmax cancels the key bias of most encoders, so the graph omits it. The bias of attention's
  output layer contains the value bias.
- The projection to the vocabulary runs on M rows. Its logits never leave the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import onnx

from fillmask.bundles.bundle import MODEL_FILE, WEIGHTS_FILE
from fillmask_export.graph.attention import Attention
from fillmask_export.graph.int8_operators import Int8GraphBuilder
from fillmask_export.graph.nodes import integer_tensor
from fillmask_export.graph.operators import GraphBuilder
from fillmask_export.graph.weight_file import WeightFile
from fillmask_export.graph.weights import POSITIONS_BY_TYPE, encoder_weights
from fillmask_export.quantization.weights import Int8Weights
from fillmask_model.encoder.encoder import TiedEncoder

OPSET = 24
FLOAT = onnx.TensorProto.FLOAT
QKV = ("query", "key", "value")
TOKENS = "input_ids"  # name of an input with one entry per token


class Ends(NamedTuple):
    """Inputs and outputs of a graph that belong to one head."""

    inputs: list[onnx.ValueInfoProto]
    outputs: list[onnx.ValueInfoProto]


class GraphHead(Protocol):
    """Head of a graph, whose outputs are results for one task.

    Attributes:
        slots: name of an input of the graph with one entry per slot that the head reads.
    """

    slots: ClassVar[str]

    def add(self, g: GraphBuilder, x_SD: str, rows: str, own: Callable[[str], str]) -> Ends:
        """Add the nodes of the head.

        Args:
            x_SD: hidden states of the slots that this head and the heads after it read.
            rows: tensor whose first axis has S entries.
            own: function that selects the rows of this head among S rows.
        """


def served_graph(g: GraphBuilder, heads: Sequence[GraphHead]) -> onnx.ModelProto:
    """Build the graph that `fillmask.engine.runtime` runs.

    Args:
        g: graph builder for fp32 or int8, with the weights of `fillmask_export.graph.weights`.
        heads: one for each task. The graph reads their slots in this order.
    """
    config = g.config
    x_RD = _embeddings(g)
    attention = Attention(g)
    for layer in range(config.num_layers - 1):
        x_RD = _block(g, attention, layer, x_RD)
    slots = [head.slots for head in heads]
    read = g.add("Concat", slots, axis=0) if len(slots) > 1 else slots[0]
    x_SD = _last_block(g, attention, config.num_layers - 1, x_RD, read)
    if config.final_norm:
        x_SD = g.norm(x_SD, "final_norm")

    inputs = [
        integer_tensor("input_ids", "R"),
        integer_tensor("positions", "R"),
        integer_tensor("pad_index", "B", "W"),
        integer_tensor("slot_texts", "B", "W"),
        integer_tensor("unpad_index", "R"),
        integer_tensor("query_index", "B", "Q"),
        integer_tensor("query_texts", "B", "Q"),
    ]
    outputs = []
    if POSITIONS_BY_TYPE in g.weights:
        inputs.append(integer_tensor("token_types", "R"))
    for head in heads:
        if head is heads[-1]:
            ends = head.add(g, x_SD, read, lambda x: x)
        else:
            ends = head.add(g, x_SD, read, partial(_first, g, counted=head.slots))
            x_SD = _after(g, x_SD, head.slots)
        inputs += ends.inputs
        outputs += ends.outputs
    return g.model(inputs=inputs, outputs=outputs, opset=OPSET)


def save_graph(
    model: TiedEncoder,
    heads: Sequence[GraphHead],
    max_tokens: int,
    token_types: int,
    directory: Path,
    int8: Int8Weights | None = None,
) -> None:
    """Write the served graph and its weights.

    The function writes one weight at a time, so that memory never contains a second copy of all
    weights.

    Args:
        model: fp32 encoder.
        directory: new directory for the files.
        int8: rounding of the weights. None for fp32.
    """
    weights = encoder_weights(model, max_tokens, token_types)
    directory.mkdir()
    with closing(WeightFile(directory / WEIGHTS_FILE)) as file:
        if int8 is None:
            builder = GraphBuilder(model.config, weights, file)
        else:
            builder = Int8GraphBuilder(model.config, weights, int8, file)
        graph = served_graph(builder, heads)
    onnx.save(graph, directory / MODEL_FILE)
    # check the file, because the graph in memory has no weights
    onnx.checker.check_model(str(directory / MODEL_FILE), full_check=True)


def _first(g: GraphBuilder, x: str, counted: str) -> str:
    """Slice the first n rows of `x`, where n is the number of rows of `counted`."""
    return g.add("Slice", [x, g.integers(0), g.add("Shape", [counted], end=1), g.integers(0)])


def _after(g: GraphBuilder, x: str, counted: str) -> str:
    """Slice the rows of `x` after the first n rows, where n is the number of rows of `counted`."""
    last = g.integers(np.iinfo(np.int64).max)
    return g.add("Slice", [x, g.add("Shape", [counted], end=1), last, g.integers(0)])


def _embeddings(g: GraphBuilder) -> str:
    x_RE = g.lookup("input_ids")
    if g.config.token_dropout_id is not None:
        x_RE = g.token_dropout(x_RE, "input_ids", _unmasked_share(g))
    table = None if POSITIONS_BY_TYPE in g.weights else g.position_table()
    if POSITIONS_BY_TYPE in g.weights:
        first_R = g.add("Mul", ["token_types", g.integers(g.max_tokens)])
        row_R = g.add("Add", ["positions", first_R])
        x_RE = g.add("Add", [x_RE, g.add("Gather", [g.weight(POSITIONS_BY_TYPE), row_R])])
    elif table is not None:
        x_RE = g.add("Add", [x_RE, g.add("Gather", [table, "positions"])])
    return g.norm_and_project(x_RE)


def _unmasked_share(g: GraphBuilder) -> str:
    """Compute the share (R, 1) of unmasked tokens in each token's text."""
    text_R = g.add("Gather", [g.add("Reshape", ["slot_texts", g.integers(-1)]), "unpad_index"])
    tokens_R = g.add("Cast", [g.add("GreaterOrEqual", [text_R, g.integers(0)])], to=FLOAT)
    masks_R = g.add("Cast", [g.is_mask("input_ids")], to=FLOAT)
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
    query, key = (
        attention.rotated(attention.normed(x, f"{name}.{part}"), layer)
        for x, part in ((query, "query"), (key, "key"))
    )
    query, key, value = _pad(g, [query, key, value])
    mixed_BWD = attention.attend_all(query, key, value, layer)
    mixed_RD = g.add("Gather", [_flat_rows(g, mixed_BWD), "unpad_index"])
    return g.after_attention(x_RD, mixed_RD, name, TOKENS)


def _last_block(g: GraphBuilder, attention: Attention, layer: int, x_RD: str, read: str) -> str:
    """Add the last block, whose output contains only the slots that a head reads."""
    name = f"blocks.{g.config.layers[layer]}"
    source_RD = g.attention_input(x_RD, name)
    slots_S = g.add("Reshape", ["query_index", g.integers(-1)])
    query_SD = g.linear(g.add("Gather", [source_RD, slots_S]), f"{name}.query", slots_S)
    query_SD = attention.rotated(attention.normed(query_SD, f"{name}.query"), layer, slots_S)
    shape = g.add("Concat", [g.add("Shape", ["query_index"]), g.integers(-1)], axis=0)
    query_BQD = g.add("Reshape", [query_SD, shape])
    key, value = g.linears(source_RD, [f"{name}.{part}" for part in QKV[1:]], TOKENS)
    key = attention.rotated(attention.normed(key, f"{name}.key"), layer)
    key, value = _pad(g, [key, value])
    mixed_BQD = attention.attend_from(query_BQD, key, value, attention.mask_slots(), layer)
    mixed_MD = g.add("Gather", [_flat_rows(g, mixed_BQD), read])
    x_MD = g.add("Gather", [x_RD, g.add("Gather", [slots_S, read])])
    return g.after_attention(x_MD, mixed_MD, name, read)


def _pad(g: GraphBuilder, packed: list[str]) -> list[str]:
    """Pad tensors (R, D) to (B, W, D)."""
    return [g.add("Gather", [x_RD, "pad_index"]) for x_RD in packed]


def _flat_rows(g: GraphBuilder, x: str) -> str:
    return g.add("Reshape", [x, g.integers(-1, g.config.d_model)])
