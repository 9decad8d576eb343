"""Building blocks of graphs: constants, linear layers, norms, activations.

Methods take and return names of tensors, so that code that builds a graph reads like the encoder.
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

IR_VERSION = 10  # supported since onnxruntime 1.20
PART_ROWS = 65_536  # larger vocabularies are ranked in parts


class GraphBuilder:
    """Builder of a float32 graph: collects nodes and initializers.

    Args:
        config: sizes and choices of the encoder.
        weights: its tensors by name, float32.
        file: file for initializers; by default they are stored in the graph.
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
        self._count = 0  # of nodes in the graph and its subgraphs, for unique names

    def add(
        self, operator: str, inputs: Sequence[str], outputs: Sequence[str] = (), **attributes: Any
    ) -> str:
        """Append a node and return the name of its first output."""
        names = list(outputs) or [f"{operator.lower()}_{self.next_number()}"]
        self.nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names[0]

    def next_number(self) -> int:
        """Return a number that no name in this graph contains yet."""
        self._count += 1
        return self._count

    @contextmanager
    def subgraph(
        self, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto]
    ) -> Iterator[onnx.GraphProto]:
        """Collect the nodes added in this block in a subgraph, which can read outer tensors."""
        outside, self.nodes = self.nodes, []
        graph = onnx.GraphProto(name="body", input=inputs, output=outputs)
        try:
            yield graph
        finally:
            graph.node.extend(self.nodes)
            self.nodes = outside

    def constant(self, name: str, values: NDArray[Any]) -> str:
        """Return the name of an initializer; the first call with a name adds its values."""
        if name not in self.initializers:
            kept = self._file.add(name, values) if self._file else None
            self.initializers[name] = kept or numpy_helper.from_array(
                np.ascontiguousarray(values), name
            )
        return name

    def constant_rows(self, name: str, values: NDArray[Any], part: slice) -> str:
        """Return some rows of a constant as an initializer; in a file they share its bytes."""
        key = f"{name}.{part.start}"
        if self._file is None or name not in self.initializers:
            return self.constant(key, values[part])
        if key not in self.initializers:
            self.initializers[key] = self._file.add_part(key, name, values[part], part.start)
        return key

    def scalar(self, name: str, value: float) -> str:
        """Return a float32 constant."""
        return self.constant(name, np.array(value, np.float32))

    def integers(self, *values: int) -> str:
        """Return a constant int64 vector."""
        return self.constant("int64_" + "_".join(map(str, values)), np.array(values, np.int64))

    def bias(self, name: str) -> NDArray[np.float32] | None:
        """Return a bias vector, or None if the encoder has none."""
        return self.weights.get(name)

    def folded_bias(self, name: str) -> NDArray[np.float32] | None:
        """Return the bias of a linear layer in the served graph.

        Softmax cancels the key bias, unless keys have rotary embeddings. The value bias passes
        through attention unchanged, because attention weights sum to one, so it is folded into the
        bias of the output projection.
        """
        dropped = (".value",) if self.config.rotary_base is not None else (".key", ".value")
        if name.endswith(dropped):
            return None
        bias = self.bias(f"{name}.bias")
        if bias is None or not name.endswith(".output"):
            return bias
        value_bias = self.weights[f"{name.removesuffix('.output')}.value.bias"]
        folded = self.weights[f"{name}.weight"].astype(np.float64) @ value_bias
        return (bias + folded).astype(np.float32)

    def lookup(self, ids: str) -> str:
        """Gather rows of the embedding table."""
        return self.add("Gather", [self.weight(TABLE), ids])

    @property
    def vocabulary_parts(self) -> list[slice]:
        """Slices of the vocabulary that are ranked separately."""
        rows = self.config.vocab_size
        return [slice(start, min(start + PART_ROWS, rows)) for start in range(0, rows, PART_ROWS)]

    def vocabulary(self, x: str, rows: str, part: slice) -> str:  # noqa: ARG002 - what int8 needs to know
        """Compute the logits of a part of the vocabulary; `rows` as for `linears`."""
        if len(self.vocabulary_parts) == 1:
            return self.table_logits(x)
        table = output_table(self.config)
        bias = self.bias("head_bias")
        part_bias = None if bias is None else bias[part]
        weight = self.constant_rows(table, self.weights[table], part)
        return self.gemm(x, weight, f"head_bias.{part.start}", part_bias)

    def table_logits(self, x: str, outputs: Sequence[str] = ()) -> str:
        """Compute logits `x @ table.T`, plus the head's bias if there is one."""
        table = self.weight(output_table(self.config))
        return self.gemm(x, table, "head_bias", self.bias("head_bias"), outputs)

    def linears(self, x: str, names: Sequence[str], rows: str) -> list[str]:  # noqa: ARG002 - what int8 needs to know
        """Add linear layers of one input (R, in); returns an (R, out) tensor for each.

        Args:
            x: the input.
            names: of the layers.
            rows: a tensor whose first axis is R, the same for all inputs with R rows.
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
        """Add one linear layer; arguments as for `linears`."""
        return self.linears(x, [name], rows)[0]

    def feed_forward(self, x: str, name: str, rows: str) -> str:
        """Add the feed-forward network of a block; `rows` as for `linears`."""
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
        """Compute `x @ weight.T`, plus the bias if there is one."""
        inputs = [x, weight]
        if bias is not None and bias.any():
            inputs.append(self.constant(bias_name, bias))
        return self.add("Gemm", inputs, outputs, transB=1)

    def add_bias(self, x: str, name: str, bias: NDArray[np.float32] | None) -> str:
        """Add a bias if there is one."""
        if bias is None or not bias.any():
            return x
        return self.add("Add", [x, self.constant(name, bias)])

    def norm(self, x: str, name: str) -> str:
        """Add a layer norm over the last axis; without affine parameters its scale is one."""
        weight, bias = self.weights.get(f"{name}.weight"), self.weights.get(f"{name}.bias")
        if weight is None:
            weight = np.ones(self.config.d_model, np.float32)
            name = "ones"
        inputs = [x, self.constant(f"{name}.weight", weight)]
        if bias is not None:
            inputs.append(self.constant(f"{name}.bias", bias))
        return self.add("LayerNormalization", inputs, epsilon=self.config.norm_eps)

    def attention_input(self, x: str, name: str) -> str:
        """Normalise the input of a block's attention if the encoder is pre-norm."""
        unnormed = name == "blocks.0" and not self.config.first_attention_norm
        pre_norm = self.config.norm_placement == "pre" and not unnormed
        return self.norm(x, f"{name}.attention_norm") if pre_norm else x

    def gelu(self, x: str, *, head: bool = False) -> str:
        """Add GELU as one operator (opset 20), in the form of the blocks or of the head."""
        return self.add("Gelu", [x], approximate=self.approximation(head=head))

    def position_table(self) -> str | None:
        """Return the table (P, E) that is added to word embeddings; None without one."""
        return self.weight(POSITIONS) if POSITIONS in self.weights else None

    @property
    def max_tokens(self) -> int:
        """Length P of the longest input."""
        tables = (POSITIONS, COSINES.format(EVERYTHING))
        lengths = [len(self.weights[name]) for name in tables if name in self.weights]
        return lengths[0] if lengths else self.config.max_positions

    def weight(self, name: str) -> str:
        """Return one of the encoder's tensors as a constant."""
        return self.constant(name, self.weights[name])

    def model(
        self,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
        opset: int,
    ) -> onnx.ModelProto:
        """Return the model with all nodes and initializers."""
        graph = helper.make_graph(
            self.nodes, "fillmask", inputs, outputs, list(self.initializers.values())
        )
        domains = {"": opset} | self.domains
        opsets = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="fillmask"
        )

    def approximation(self, *, head: bool) -> str:
        """Return the `approximate` attribute of the Gelu operator."""
        config = self.config
        differs = head and config.head_activation != "same"
        activation = config.head_activation if differs else config.activation
        return "tanh" if activation == "gelu_tanh" else "none"


def integer_tensor(name: str, *axes: str | int | None) -> onnx.ValueInfoProto:
    """Describe an int64 input or output; an axis is a name, a size, or None for any."""
    return helper.make_tensor_value_info(name, TensorProto.INT64, axes)


def float_tensor(name: str, *axes: str | int | None) -> onnx.ValueInfoProto:
    """Describe a float32 input or output; axes as for `integer_tensor`."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, axes)
