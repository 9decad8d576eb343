"""Chains of standard operators in int8 graphs, and the operator that replaces them.

A linear layer in int8 is a chain: factors, scales of the rows, rounding, product, scales, bias,
float32 channels, activation and residual connection. One operator `Int8Linear` replaces up to three
chains that start with the same rounded rows. native/src/int8_linear.cpp describes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx
from onnx import NodeProto, helper, numpy_helper

from fillmask_export.graph.fused.graph_reader import DOMAIN, GraphReader, replace_nodes
from fillmask_export.graph.nodes import float_tensor

MAX_OUTPUTS = 3
NO_ACTIVATION, GELU, GELU_TANH, SILU = range(4)


@dataclass(frozen=True, slots=True)
class Chain:
    """A linear layer on rounded rows. Missing tensors have the name "".

    Attributes:
        outputs: number of outputs of the layer.
        floats: rows of float32 channels.
        residual: tensor that the layer's output is added to.
        output: tensor at the end of the chain.
    """

    weight: str
    scales: str
    outputs: int
    transposed: bool
    bias: str
    float_weight: str
    floats: str
    activation: int
    residual: str
    output: str


class Chains:
    """Reader of the chains in a graph.

    Args:
        graph: reader of the graph and of the graphs of its loops.
    """

    def __init__(self, graph: GraphReader) -> None:
        self._graph = graph

    def read(self, product: NodeProto, *, alone: bool) -> Chain:
        """Read a chain from its MatMulIntegerToFloat node to its end.

        Args:
            alone: whether no other chain starts with the same rows, so that the chain may contain
                a residual connection.
        """
        weight, transposed = product.input[1], False
        if weight not in self._graph.constants:
            weight, transposed = self._graph.producer(weight, "Transpose").input[0], True
        scales = product.input[3]
        [scaled] = self._graph.readers[product.output[0]]
        output, bias, float_weight, floats = scaled.output[0], "", "", ""
        added = self._graph.reader(output, "Add")
        if added is not None:
            [other] = set(added.input) - {output}
            gemm = self._graph.producers.get(other)
            if other in self._graph.constants:
                output, bias = added.output[0], other
            elif gemm is not None and gemm.op_type == "Gemm":
                output = added.output[0]
                floats, float_weight, *biases = gemm.input
                bias = biases[0] if biases else ""
        output, activation = self._activation(output)
        output, residual = self._residual(output) if alone else (output, "")
        return Chain(
            weight,
            scales,
            self._graph.constants[scales].dims[0],
            transposed,
            bias,
            float_weight,
            floats,
            activation,
            residual,
            output,
        )

    def operator(self, rounded: str, chains: Sequence[Chain]) -> NodeProto:
        """Return the operator for chains that start with the same rounded rows."""
        x, _, zeros = self._graph.producer(rounded, "QuantizeLinear").input
        zero = self._graph.constants[self._graph.producer(zeros, "Expand").input[0]]
        factors = ""
        scaled = self._graph.producers.get(x)
        if (
            scaled is not None
            and scaled.op_type == "Mul"
            and scaled.input[1] in self._graph.constants
        ):
            x, factors = scaled.input
        floats = channels = ""
        for given in {chain.floats for chain in chains} - {""}:  # one tensor or none
            floats, channels = self._floats(given, x)
        inputs = [x, factors, floats, channels, chains[0].residual]
        for chain in chains:
            inputs += [chain.weight, chain.scales, chain.bias, chain.float_weight]
        while not inputs[-1]:
            inputs.pop()
        return helper.make_node(
            "Int8Linear",
            inputs,
            [chain.output for chain in chains],
            domain=DOMAIN,
            zero_point=numpy_helper.to_array(zero).item(),
            transposed=int(chains[0].transposed),
            activations=[chain.activation for chain in chains],
        )

    def _residual(self, name: str) -> tuple[str, str]:
        """Return the tensor after a residual connection, and what it adds."""
        added = self._graph.reader(name, "Add")
        if added is None:
            return name, ""
        [other] = set(added.input) - {name}
        return (name, "") if other in self._graph.constants else (added.output[0], other)

    def _floats(self, floats: str, x: str) -> tuple[str, str]:
        """Return the tensor of float32 channels, or else their indices in the input."""
        gather = self._graph.producers.get(floats)
        if gather is not None and gather.op_type == "Gather" and gather.input[0] == x:
            return "", gather.input[1]
        return floats, ""

    def _activation(self, name: str) -> tuple[str, int]:
        """Return the activation of a tensor, and the tensor after the activation."""
        gelu = self._graph.reader(name, "Gelu")
        if gelu is not None:
            tanh = any(one.s == b"tanh" for one in gelu.attribute)
            return gelu.output[0], GELU_TANH if tanh else GELU
        readers = self._graph.readers.get(name, [])
        if sorted(one.op_type for one in readers) == ["Mul", "Sigmoid"]:
            sigmoid, product = sorted(readers, key=lambda one: one.op_type, reverse=True)
            if set(product.input) == {name, sigmoid.output[0]}:
                return product.output[0], SILU
        return name, NO_ACTIVATION


def replace_linears(graph: onnx.GraphProto, chains: Chains) -> bool:
    """Replace the chains of a graph without the graphs of its loops."""
    products: dict[str, list[NodeProto]] = {}
    for node in graph.node:
        if node.op_type == "MatMulIntegerToFloat":
            products.setdefault(node.input[0], []).append(node)
    # in place of its first product, an operator comes before all readers of its outputs
    operators: dict[str, NodeProto] = {}
    replaced: set[str] = set()
    for rounded, nodes in products.items():
        for start in range(0, len(nodes), MAX_OUTPUTS):
            group = nodes[start : start + MAX_OUTPUTS]
            some = [chains.read(node, alone=len(group) == 1) for node in group]
            operators[nodes[start].output[0]] = chains.operator(rounded, some)
            replaced |= {chain.output for chain in some}
            for chain in some:
                graph.value_info.append(float_tensor(chain.output, None, chain.outputs))
    kept: list[NodeProto] = []
    for node in graph.node:
        if node.output[0] in operators:
            kept.append(operators[node.output[0]])
        elif node.output[0] not in replaced:
            kept.append(node)
    replace_nodes(graph, kept)
    return bool(operators)
