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

import numpy as np
import onnx

from fillmask_export.graph.attention import Attention
from fillmask_export.graph.embedding import is_mask, norm_and_project, token_dropout
from fillmask_export.graph.heads.classification import label_logits
from fillmask_export.graph.heads.sparse import LENGTHS, sparse_weights
from fillmask_export.graph.operators import GraphBuilder
from fillmask_export.graph.ranking import rank
from fillmask_export.graph.value_types import float_tensor, integer_tensor
from fillmask_export.graph.weights import POSITIONS_BY_TYPE
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.sparse import SparsePooling

OPSET = 24
FLOAT = onnx.TensorProto.FLOAT
QKV = ("query", "key", "value")
# names of an input with one entry per token and of an input with one entry per mask
TOKENS, MASKS = "input_ids", "mask_slots"
POOLED = "label_slots"  # input with one entry per token that the classification head reads
SPARSE = "sparse_slots"  # input with one entry per token whose logits a sparse vector pools


def served_graph(
    g: GraphBuilder,
    classifier: ClassifierConfig | None = None,
    sparse: SparsePooling | None = None,
    *,
    fills: bool = True,
) -> onnx.ModelProto:
    """Build the graph that `fillmask.engine.runtime` runs.

    Args:
        g: graph builder for fp32 or int8, with the weights of `fillmask_export.graph.weights`.
        classifier: configuration of the classification head. None for a graph without labels.
        sparse: pooling of sparse vectors, which excludes fills and labels. None for a graph without
            them.
        fills: whether the graph fills masks.
    """
    config = g.config
    x_RD = _embeddings(g)
    attention = Attention(g)
    for layer in range(config.num_layers - 1):
        x_RD = _block(g, attention, layer, x_RD)
    read = SPARSE if sparse else _read_slots(g, classifier, fills=fills)
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
    if fills:
        head_SD = x_SD
        if config.head_transform:
            # of all slots, because int8 layers cannot compute zero rows in a batch without masks
            head_SD = _head_transform(g, x_SD, read)
        rank(g, _first(g, head_SD, MASKS) if classifier else head_SD, MASKS)
        inputs += [
            integer_tensor(MASKS, "M"),
            integer_tensor("top_k", 1),
            integer_tensor("target_ids", "M", "K"),
        ]
        outputs += [
            integer_tensor("top_ids", "M", "k"),
            float_tensor("top_log_probs", "M", "k"),
            float_tensor("target_log_probs", "M", "K"),
        ]
    if classifier:
        x_CD = _after(g, x_SD, MASKS) if fills else x_SD
        label_logits(g, x_CD, classifier)
        inputs.append(integer_tensor(POOLED, "C"))
        if classifier.pooling == "mean":
            inputs += [integer_tensor("label_texts", "C"), integer_tensor("label_lengths", "N")]
        outputs.append(float_tensor("label_logits", "N", len(classifier.labels)))
    if sparse:
        head_CD = _head_transform(g, x_SD, read) if config.head_transform else x_SD
        sparse_weights(g, head_CD, sparse)
        inputs += [integer_tensor(SPARSE, "C"), integer_tensor(LENGTHS, "N")]
        outputs.append(float_tensor("sparse_weights", "N", config.vocab_size))
    return g.model(inputs=inputs, outputs=outputs, opset=OPSET)


def _head_transform(g: GraphBuilder, x: str, rows: str) -> str:
    for name in ["head.inner"] * bool(g.config.head_inner) + ["head.dense"]:
        x = g.activate(g.linear(x, name, rows), g.config.activation_of_head)
    return g.norm(x, "head.norm") if g.config.head_norm else x


def _read_slots(g: GraphBuilder, classifier: ClassifierConfig | None, *, fills: bool) -> str:
    """Select the slots that a head reads, with the masks before the pooled tokens."""
    if classifier and fills:
        return g.add("Concat", [MASKS, POOLED], axis=0)
    return MASKS if fills else POOLED


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
        x_RE = token_dropout(g, x_RE, "input_ids", _unmasked_share(g))
    table = None if POSITIONS_BY_TYPE in g.weights else g.position_table()
    if POSITIONS_BY_TYPE in g.weights:
        first_R = g.add("Mul", ["token_types", g.integers(g.max_tokens)])
        row_R = g.add("Add", ["positions", first_R])
        x_RE = g.add("Add", [x_RE, g.add("Gather", [g.weight(POSITIONS_BY_TYPE), row_R])])
    elif table is not None:
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
    query, key = (
        attention.rotated(attention.normed(x, f"{name}.{part}"), layer)
        for x, part in ((query, "query"), (key, "key"))
    )
    query, key, value = _pad(g, [query, key, value])
    mixed_BWD = attention.attend_all(query, key, value, layer)
    mixed_RD = g.add("Gather", [_flat_rows(g, mixed_BWD), "unpad_index"])
    return _after_attention(g, name, x_RD, mixed_RD, TOKENS)


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
    return _after_attention(g, name, x_MD, mixed_MD, read)


def _pad(g: GraphBuilder, packed: list[str]) -> list[str]:
    """Pad tensors (R, D) to (B, W, D)."""
    return [g.add("Gather", [x_RD, "pad_index"]) for x_RD in packed]


def _after_attention(g: GraphBuilder, name: str, x: str, mixed: str, rows: str) -> str:
    x = g.add("Add", [x, g.linear(mixed, f"{name}.output", rows)])
    if g.config.norm_placement == "pre":
        return g.add("Add", [x, g.feed_forward(g.norm(x, f"{name}.ffn_norm"), name, rows)])
    x = g.norm(x, f"{name}.attention_norm")
    return g.norm(g.add("Add", [x, g.feed_forward(x, name, rows)]), f"{name}.ffn_norm")


def _flat_rows(g: GraphBuilder, x: str) -> str:
    return g.add("Reshape", [x, g.integers(-1, g.config.d_model)])
