"""Fused form of an int8 graph, for machines with the operators of `fillmask-native`.

The weights stay in the file of the stock graph.
"""

from __future__ import annotations

import onnx
from onnx import helper
from onnx.external_data_helper import ExternalDataInfo

from fillmask_export.graph.fused.graph_reader import (
    DOMAIN,
    OPERATORS_VERSION,
    GraphReader,
    remove_unused,
    with_subgraphs,
)
from fillmask_export.graph.fused.int8_linear import Chains, replace_linears
from fillmask_export.graph.fused.packed_attention import replace_attention


def packed_weights(fused: onnx.ModelProto) -> list[tuple[int, int]]:
    """Return the offset and the size in bytes of each weight in the file that only operators read.

    A tied table also serves the lookup of embeddings.
    """
    reader = GraphReader(fused.graph)
    found = []
    for tensor in fused.graph.initializer:
        readers = {node.op_type for node in reader.readers[tensor.name]}
        external = tensor.data_location == onnx.TensorProto.EXTERNAL
        if external and tensor.data_type == onnx.TensorProto.INT8 and readers == {"Int8Linear"}:
            place = ExternalDataInfo(tensor)
            found.append((int(place.offset or 0), int(place.length or 0)))
    return found


def fuse(model: onnx.ModelProto, d_model: int) -> onnx.ModelProto | None:
    """Return the fused form of a served graph, or None for a graph without int8 layers.

    Args:
        model: graph whose weights may be in an external file.
    """
    fused = onnx.ModelProto()
    fused.CopyFrom(model)
    reader = GraphReader(fused.graph)
    chains = Chains(reader)
    replaced = [replace_linears(graph, chains) for graph in with_subgraphs(fused.graph)]
    if not any(replaced):
        return None
    replace_attention(fused.graph, GraphReader(fused.graph), d_model)
    remove_unused(fused.graph)
    fused.opset_import.append(helper.make_opsetid(DOMAIN, OPERATORS_VERSION))
    return fused
