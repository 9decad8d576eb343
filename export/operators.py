"""The parts graphs are made of: named constants, linear maps, norms, activations.

Every part takes and returns names of tensors, so that a graph reads top to bottom like the encoder
it stands for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from export.quantize import quantize_rows
from model.config import EncoderConfig

IR_VERSION = 10  # what runtimes since onnxruntime 1.20 read


class GraphBuilder:
    """Collects nodes and initializers.

    Args:
        config: the encoder's sizes and choices.
        weights: its tensors by name, float32.
        int8: store the weight matrices as int8 with a scale per row.
    """

    def __init__(
        self, config: EncoderConfig, weights: dict[str, NDArray[np.float32]], *, int8: bool = False
    ) -> None:
        self.config = config
        self.weights = weights
        self.int8 = int8
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}

    def add(
        self, operator: str, inputs: Sequence[str], outputs: Sequence[str] = (), **attributes: Any
    ) -> str:
        """Append a node; returns the name of its first output."""
        names = list(outputs) or [f"{operator.lower()}_{len(self.nodes)}"]
        self.nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names[0]

    def constant(self, name: str, values: NDArray[Any]) -> str:
        """An initializer; one name holds one array, however often it is asked for."""
        if name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def integers(self, *values: int) -> str:
        """A constant int64 vector."""
        return self.constant("int64_" + "_".join(map(str, values)), np.array(values, np.int64))

    def matrix(self, name: str) -> str:
        """A weight matrix (rows, columns) as float32, in the stored precision."""
        if not self.int8:
            return self.constant(name, self.weights[name])
        dequantized = f"{name}.dequantized"
        if f"{name}.scales" not in self.initializers:
            rows = quantize_rows(self.weights[name])
            inputs = [
                self.constant(name, rows.values),
                self.constant(f"{name}.scales", rows.scales),
            ]
            self.add("DequantizeLinear", inputs, [dequantized], axis=0)
        return dequantized

    def matrix_values(self, name: str) -> NDArray[np.float32]:
        """The values `matrix` computes with."""
        weight = self.weights[name]
        return quantize_rows(weight).dequantized() if self.int8 else weight

    def rows_linear(self, rows: str, name: str, bias: NDArray[np.float32] | None) -> str:
        """`rows @ weight.T + bias` on rows (R, in); the weight is stored (out, in)."""
        inputs = [rows, self.matrix(name)]
        if bias is not None:
            inputs.append(self.constant(f"{name}.bias", bias))
        return self.add("Gemm", inputs, transB=1)

    def norm(self, x: str, name: str) -> str:
        """Layer norm over the last axis; without affine parameters its scale is one."""
        if self.config.norm_affine:
            scale = self.constant(f"{name}.weight", self.weights[f"{name}.weight"])
            shift = self.constant(f"{name}.bias", self.weights[f"{name}.bias"])
        else:
            scale = self.constant("ones", np.ones(self.config.d_model, np.float32))
            shift = self.constant("zeros", np.zeros(self.config.d_model, np.float32))
        return self.add("LayerNormalization", [x, scale, shift], epsilon=self.config.norm_eps)

    def gelu(self, x: str) -> str:
        """GELU as one operator (opset 20)."""
        return self.add("Gelu", [x], approximate=self._approximation)

    def gelu_elementary(self, x: str) -> str:
        """GELU written out, for runtimes older than opset 20."""
        half = self._scalar("half", 0.5)
        one = self._scalar("one", 1.0)
        if self._approximation == "tanh":
            cube = self.add("Mul", [self.add("Mul", [x, x]), x])
            bent = self.add("Mul", [cube, self._scalar("gelu_cubic", 0.044715)])
            scale = self._scalar("sqrt_2_over_pi", math.sqrt(2 / math.pi))
            curve = self.add("Tanh", [self.add("Mul", [self.add("Add", [x, bent]), scale])])
        else:
            scale = self._scalar("sqrt_half", math.sqrt(0.5))
            curve = self.add("Erf", [self.add("Mul", [x, scale])])
        return self.add("Mul", [self.add("Mul", [x, half]), self.add("Add", [curve, one])])

    def position_table(self) -> str:
        """(max_positions, D), with token type 0 added in: every token of a fill has type 0."""
        return self.constant("embeddings.position", self.weights["embeddings.position"])

    def bias(self, name: str) -> NDArray[np.float32] | None:
        """A bias vector, or None where the encoder has none."""
        return self.weights.get(name)

    def model(
        self,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
        opset: int,
    ) -> onnx.ModelProto:
        """The finished model."""
        graph = helper.make_graph(
            self.nodes, "fillmask", inputs, outputs, list(self.initializers.values())
        )
        opsets = [helper.make_opsetid("", opset)]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="fillmask"
        )

    @property
    def _approximation(self) -> str:
        return "tanh" if self.config.activation == "gelu_tanh" else "none"

    def _scalar(self, name: str, value: float) -> str:
        return self.constant(name, np.array(value, np.float32))


def integer_tensor(name: str, *axes: str | int | None) -> onnx.ValueInfoProto:
    """An int64 input or output; an axis is a name, a size, or None for any."""
    return helper.make_tensor_value_info(name, TensorProto.INT64, axes)


def float_tensor(name: str, *axes: str | int | None) -> onnx.ValueInfoProto:
    """A float32 input or output; axes as for `integer_tensor`."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, axes)
