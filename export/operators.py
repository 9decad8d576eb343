"""The parts graphs are made of: named constants, linear maps, norms, activations.

Every part takes and returns names of tensors, so that a graph reads top to bottom like the encoder
it stands for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from export.weight_file import WeightFile
from export.weights import COSINES, EVERYTHING, POSITIONS
from model.encoder.config import EncoderConfig
from model.encoder.encoder import TABLE, output_table

IR_VERSION = 10  # what runtimes since onnxruntime 1.20 read
PART_ROWS = 65_536  # a vocabulary above this is ranked in parts


class GraphBuilder:
    """Collects nodes and initializers, in float32.

    Args:
        config: the encoder's sizes and choices.
        weights: its tensors by name, float32.
        file: where initializers are kept; in the graph by default.
    """

    def __init__(
        self,
        config: EncoderConfig,
        weights: dict[str, NDArray[np.float32]],
        file: WeightFile | None = None,
    ) -> None:
        self.config = config
        self.weights = weights
        self._file = file
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}
        self.domains: dict[str, int] = {}
        self._count = 0  # of nodes, in all graphs: names are unique across them

    def add(
        self, operator: str, inputs: Sequence[str], outputs: Sequence[str] = (), **attributes: Any
    ) -> str:
        """Append a node; returns the name of its first output."""
        names = list(outputs) or [f"{operator.lower()}_{self.next_number()}"]
        self.nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names[0]

    def next_number(self) -> int:
        """A number that no name in this graph has yet."""
        self._count += 1
        return self._count

    @contextmanager
    def subgraph(
        self, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto]
    ) -> Iterator[onnx.GraphProto]:
        """Nodes added inside go into a graph of their own, which sees all that is outside."""
        outside, self.nodes = self.nodes, []
        graph = onnx.GraphProto(name="body", input=inputs, output=outputs)
        try:
            yield graph
        finally:
            graph.node.extend(self.nodes)
            self.nodes = outside

    def constant(self, name: str, values: NDArray[Any]) -> str:
        """An initializer; one name holds one array, however often it is asked for."""
        if name not in self.initializers:
            kept = self._file.add(name, values) if self._file else None
            self.initializers[name] = kept or numpy_helper.from_array(
                np.ascontiguousarray(values), name
            )
        return name

    def rows(self, name: str, values: NDArray[Any], part: slice) -> str:
        """Some rows of a constant as one of their own; of one in the file, where they lie."""
        key = f"{name}.{part.start}"
        if self._file is None or name not in self.initializers:
            return self.constant(key, values[part])
        if key not in self.initializers:
            self.initializers[key] = self._file.add_part(key, name, values[part], part.start)
        return key

    def scalar(self, name: str, value: float) -> str:
        """A float32 constant."""
        return self.constant(name, np.array(value, np.float32))

    def integers(self, *values: int) -> str:
        """A constant int64 vector."""
        return self.constant("int64_" + "_".join(map(str, values)), np.array(values, np.int64))

    def bias(self, name: str) -> NDArray[np.float32] | None:
        """A bias vector, or None where the encoder has none."""
        return self.weights.get(name)

    def folded_bias(self, name: str) -> NDArray[np.float32] | None:
        """The bias a linear map needs in the served graph.

        Softmax does not see the keys' bias, unless keys are turned by their positions. The values'
        bias passes through attention unchanged, for its weights sum to one, and so is part of the
        output projection's.
        """
        dropped = (".value",) if self.config.rotary_base is not None else (".key", ".value")
        if name.endswith(dropped):
            return None
        bias = self.bias(f"{name}.bias")
        if bias is None or not name.endswith(".output"):
            return bias
        value_bias = self.weights[f"{name.removesuffix('.output')}.value.bias"]
        passed = self.weights[f"{name}.weight"].astype(np.float64) @ value_bias
        return (bias + passed).astype(np.float32)

    def lookup(self, ids: str) -> str:
        """Rows of the embedding table."""
        return self.add("Gather", [self.weight(TABLE), ids])

    @property
    def vocabulary_parts(self) -> list[slice]:
        """The parts of the vocabulary that are ranked at a time."""
        rows = self.config.vocab_size
        return [slice(start, min(start + PART_ROWS, rows)) for start in range(0, rows, PART_ROWS)]

    def vocabulary(self, x: str, rows: str, part: slice) -> str:  # noqa: ARG002 - what int8 needs to know
        """Logits of a part, by the embedding table or the output's own; rows as for `linears`."""
        if len(self.vocabulary_parts) == 1:
            return self.table_product(x)
        table = output_table(self.config)
        bias = self.bias("head_bias")
        part_bias = None if bias is None else bias[part]
        weight = self.rows(table, self.weights[table], part)
        return self.gemm(x, weight, f"head_bias.{part.start}", part_bias)

    def table_product(self, x: str, outputs: Sequence[str] = ()) -> str:
        """`x @ table.T`, and the head's bias added where there is one."""
        table = self.weight(output_table(self.config))
        return self.gemm(x, table, "head_bias", self.bias("head_bias"), outputs)

    def linears(self, x: str, names: Sequence[str], rows: str) -> list[str]:  # noqa: ARG002 - what int8 needs to know
        """Linear maps of one input (R, in): an (R, out) each.

        Args:
            x: the input.
            names: the maps.
            rows: a tensor whose first axis is R as well, the same for all inputs of R rows.
        """
        return [
            self.gemm(
                x,
                self.weight(f"{name}.weight"),
                f"{name}.bias",
                self.folded_bias(name),
            )
            for name in names
        ]

    def linear(self, x: str, name: str, rows: str) -> str:
        """One linear map; as `linears`."""
        return self.linears(x, [name], rows)[0]

    def feed_forward(self, x: str, name: str, rows: str) -> str:
        """The feed-forward part of a block; rows as for `linears`."""
        inner = self.gelu(self.linear(x, f"{name}.ffn_in", rows))
        if self.config.gated_ffn:
            inner = self.add("Mul", [inner, self.linear(x, f"{name}.ffn_gate", rows)])
        return self.linear(inner, f"{name}.ffn_out", rows)

    def gemm(
        self,
        x: str,
        weight: str,
        bias_name: str,
        bias: NDArray[np.float32] | None,
        outputs: Sequence[str] = (),
    ) -> str:
        """`x @ weight.T` of two tensors, and the bias added where there is one."""
        inputs = [x, weight]
        if bias is not None and bias.any():
            inputs.append(self.constant(bias_name, bias))
        return self.add("Gemm", inputs, outputs, transB=1)

    def add_bias(self, x: str, name: str, bias: NDArray[np.float32] | None) -> str:
        """Adds a bias, where there is one."""
        if bias is None or not bias.any():
            return x
        return self.add("Add", [x, self.constant(name, bias)])

    def norm(self, x: str, name: str) -> str:
        """Layer norm over the last axis; without affine parameters its scale is one."""
        weight, bias = self.weights.get(f"{name}.weight"), self.weights.get(f"{name}.bias")
        if weight is None:
            weight = np.ones(self.config.d_model, np.float32)
            name = "ones"
        inputs = [x, self.constant(f"{name}.weight", weight)]
        if bias is not None:
            inputs.append(self.constant(f"{name}.bias", bias))
        return self.add("LayerNormalization", inputs, epsilon=self.config.norm_eps)

    def before_attention(self, x: str, name: str) -> str:
        """What a block's attention reads: normalised in pre-norm encoders, in most blocks."""
        bare = name == "blocks.0" and not self.config.first_attention_norm
        pre_norm = self.config.norm_placement == "pre" and not bare
        return self.norm(x, f"{name}.attention_norm") if pre_norm else x

    def gelu(self, x: str, *, head: bool = False) -> str:
        """GELU as one operator (opset 20), as in the blocks or in the head."""
        return self.add("Gelu", [x], approximate=self.approximation(head=head))

    def position_table(self) -> str | None:
        """(P, E): what is added to words by their positions, if anything is."""
        return self.weight(POSITIONS) if POSITIONS in self.weights else None

    @property
    def longest(self) -> int:
        """P, the tokens of the longest input."""
        tables = (POSITIONS, COSINES.format(EVERYTHING))
        lengths = [len(self.weights[name]) for name in tables if name in self.weights]
        return lengths[0] if lengths else self.config.max_positions

    def weight(self, name: str) -> str:
        """One of the encoder's tensors as it is."""
        return self.constant(name, self.weights[name])

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
        domains = {"": opset} | self.domains
        opsets = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="fillmask"
        )

    def approximation(self, *, head: bool) -> str:
        """Which GELU, as the operator's attribute has it."""
        config = self.config
        own = head and config.head_activation != "same"
        activation = config.head_activation if own else config.activation
        return "tanh" if activation == "gelu_tanh" else "none"


def integer_tensor(name: str, *axes: str | int | None) -> onnx.ValueInfoProto:
    """An int64 input or output; an axis is a name, a size, or None for any."""
    return helper.make_tensor_value_info(name, TensorProto.INT64, axes)


def float_tensor(name: str, *axes: str | int | None) -> onnx.ValueInfoProto:
    """A float32 input or output; axes as for `integer_tensor`."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, axes)
