"""Attention over padded rows of slots, and the operator that replaces it.

The stock graph pads queries, keys and values, and masks other texts. The operator
`PackedAttention` reads the packed rows and the text of each row. native/src/packed_attention.cpp
describes it. Attention with a window, with a bias or in chunks stays as it is.

Shapes: B rows of W slots, Q slots per row that a head reads, R tokens of all texts, D d_model,
S = B * Q.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import NodeProto, helper, numpy_helper

from fillmask_export.graph.fused.graph_reader import DOMAIN, GraphReader, replace_nodes
from fillmask_export.graph.nodes import float_tensor

WIDTH = 16  # a head must have a multiple of this width
KEY_TEXTS, QUERY_TEXTS = "packed_key_texts", "packed_query_texts"


def replace_attention(graph: onnx.GraphProto, reader: GraphReader, d_model: int) -> bool:
    """Replace the attention layers of a graph without the graphs of its loops.

    Returns:
        Whether the graph has changed.
    """
    operators: dict[str, NodeProto] = {}
    for node in graph.node:
        if node.op_type == "Attention":
            operator = _operator(node, reader, d_model)
            if operator is not None:
                operators[operator.output[0]] = operator
                graph.value_info.append(float_tensor(operator.output[0], None, d_model))
    if not operators:
        return False
    nodes = [*_texts(graph), *(operators.get(node.output[0], node) for node in graph.node)]
    replace_nodes(graph, nodes)
    return True


def _operator(attention: NodeProto, reader: GraphReader, d_model: int) -> NodeProto | None:
    """Return the operator for an attention layer, or None for a layer that must stay."""
    heads = next(one.i for one in attention.attribute if one.name == "q_num_heads")
    query, key, value, mask = attention.input
    if d_model % (heads * WIDTH) or not _only_masks_texts(mask, reader):
        return None
    [flat] = reader.readers[attention.output[0]]
    keys, values = (reader.producer(name, "Gather").input[0] for name in (key, value))
    source = reader.producers[query]
    output, texts = flat.output[0], QUERY_TEXTS
    if source.op_type == "Gather":
        # all tokens are queries, and the layer's output returns to the packed rows
        [unpad] = reader.readers[flat.output[0]]
        output, texts = unpad.output[0], KEY_TEXTS
    inputs = [source.input[0], keys, values, texts, KEY_TEXTS]
    return helper.make_node("PackedAttention", inputs, [output], domain=DOMAIN, heads=heads)


def _only_masks_texts(mask: str, reader: GraphReader) -> bool:
    """Return whether a mask only separates the texts."""
    where = reader.producers[mask]
    if where.op_type != "Where":
        return False
    return reader.producers[where.input[0]].op_type == "Equal"


def _texts(graph: onnx.GraphProto) -> list[NodeProto]:
    """Return nodes that compute the text of each token (R,) and of each query (S,)."""
    flat = numpy_helper.from_array(np.array([-1], np.int64), "packed_flat")
    graph.initializer.append(flat)
    return [
        helper.make_node("Reshape", ["slot_texts", flat.name], ["packed_slot_texts"]),
        helper.make_node("Gather", ["packed_slot_texts", "unpad_index"], [KEY_TEXTS]),
        helper.make_node("Reshape", ["query_texts", flat.name], [QUERY_TEXTS]),
    ]
