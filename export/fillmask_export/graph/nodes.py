"""Nodes and initializers of an ONNX graph, by the names of their tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from fillmask_export.graph.weight_file import WeightFile

IR_VERSION = 10  # version of the ONNX format, supported by onnxruntime 1.20 and later


class NodeBuilder:
    """Builder of a graph from nodes and initializers.

    Args:
        file: file for initializers. Without a file, the graph contains the initializers.
    """

    def __init__(self, file: WeightFile | None = None) -> None:
        self._file = file
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}
        self.domains: dict[str, int] = {}
        self._count = 0  # number of nodes in the graph and its subgraphs, for unique names

    def add(
        self, operator: str, inputs: Sequence[str], outputs: Sequence[str] = (), **attributes: Any
    ) -> str:
        """Append a node and return the name of its first output."""
        names = list(outputs) or [f"{operator.lower()}_{self.next_number()}"]
        self.nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names[0]

    def next_number(self) -> int:
        self._count += 1
        return self._count

    @contextmanager
    def subgraph(
        self, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto]
    ) -> Iterator[onnx.GraphProto]:
        """Collect the nodes of the `with` block in a subgraph, which can read the outer graph."""
        outside, self.nodes = self.nodes, []
        graph = onnx.GraphProto(name="body", input=inputs, output=outputs)
        try:
            yield graph
        finally:
            graph.node.extend(self.nodes)
            self.nodes = outside

    @contextmanager
    def loop(
        self,
        number: str,
        condition: str,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
        label: str = "",
    ) -> Iterator[onnx.GraphProto]:
        """Collect the nodes of the `with` block in the body of a Loop without an early end.

        Args:
            number: name of the number of a round in the body.
            condition: name of the condition in the body, which is always true.
            inputs: tensors that a round gets from the round before.
            outputs: tensors that a round passes on or adds to the results.
            label: end of the names of number and condition.
        """
        before, after = f"{condition}{label}", f"{condition}_after{label}"
        rounds = helper.make_tensor_value_info(f"{number}{label}", TensorProto.INT64, [])
        conditions = [
            helper.make_tensor_value_info(one, TensorProto.BOOL, []) for one in (before, after)
        ]
        with self.subgraph([rounds, conditions[0], *inputs], [conditions[1], *outputs]) as body:
            self.add("Identity", [before], [after])
            yield body

    def constant(self, name: str, values: NDArray[Any]) -> str:
        """Return the name of an initializer, which the first call with this name adds."""
        if name not in self.initializers:
            kept = self._file.add(name, values) if self._file else None
            self.initializers[name] = kept or numpy_helper.from_array(
                np.ascontiguousarray(values), name
            )
        return name

    def constant_rows(self, name: str, values: NDArray[Any], part: slice) -> str:
        """Return the name of an initializer with some rows of a constant.

        If the initializers are in a file, the rows share the bytes of the constant.
        """
        key = f"{name}.{part.start}"
        if self._file is None or name not in self.initializers:
            return self.constant(key, values[part])
        if key not in self.initializers:
            self.initializers[key] = self._file.add_part(key, name, values[part], part.start)
        return key

    def scalar(self, name: str, value: float) -> str:
        return self.constant(name, np.array(value, np.float32))

    def integers(self, *values: int) -> str:
        return self.constant("int64_" + "_".join(map(str, values)), np.array(values, np.int64))

    def model(
        self,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
        opset: int,
    ) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes, "fillmask", inputs, outputs, list(self.initializers.values())
        )
        domains = {"": opset} | self.domains
        opsets = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="fillmask"
        )


def integer_tensor(name: str, *axes: str | int | None) -> onnx.ValueInfoProto:
    """Describe an int64 input or output.

    Args:
        axes: name or size of each axis, or None for any size.
    """
    return helper.make_tensor_value_info(name, TensorProto.INT64, axes)


def float_tensor(name: str, *axes: str | int | None) -> onnx.ValueInfoProto:
    """Describe a float32 input or output.

    `integer_tensor` explains the arguments.
    """
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, axes)
