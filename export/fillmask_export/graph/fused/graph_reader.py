"""Reader of a finished graph by the names of its tensors."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import NodeProto

DOMAIN, OPERATORS_VERSION = "fillmask", 1  # of the operators in native/


class GraphReader:
    """Constants, producers and readers of tensors, in a graph and in the graphs of its loops.

    The builder gives all tensors distinct names.

    Attributes:
        constants: initializers by name.
        producers: node that computes a tensor, by the tensor's name.
        readers: nodes that read a tensor, by the tensor's name.
    """

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.constants = {tensor.name: tensor for tensor in graph.initializer}
        self.producers: dict[str, NodeProto] = {}
        self.readers: dict[str, list[NodeProto]] = {}
        for part in with_subgraphs(graph):
            for node in part.node:
                self.producers |= dict.fromkeys(node.output, node)
                for name in node.input:
                    self.readers.setdefault(name, []).append(node)

    def reader(self, name: str, operator: str) -> NodeProto | None:
        """Return the only reader of a tensor, if it is a certain operator."""
        readers = self.readers.get(name, [])
        return readers[0] if [one.op_type for one in readers] == [operator] else None

    def producer(self, name: str, operator: str) -> NodeProto:
        """Return the node that computes a tensor.

        Raises:
            ValueError: it is another operator.
        """
        node = self.producers.get(name)
        if node is None or node.op_type != operator:
            raise ValueError(f"{name} must come from {operator}")
        return node


def with_subgraphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from with_subgraphs(attribute.g)


def replace_nodes(graph: onnx.GraphProto, nodes: list[NodeProto]) -> None:
    """Replace the nodes of a graph, some of which may be its own."""
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def remove_unused(graph: onnx.GraphProto) -> None:
    """Remove nodes and initializers whose results no node reads."""
    parts = list(with_subgraphs(graph))
    while True:
        used = {name for part in parts for node in part.node for name in node.input}
        used |= {output.name for part in parts for output in part.output}
        unused = [(part, node) for part in parts for node in part.node if not used & {*node.output}]
        for part, node in unused:
            part.node.remove(node)
        if not unused:
            break
    tensors = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.initializer[:]
    graph.initializer.extend(tensors)
