"""The native operators in float64 NumPy, and ONNX models of one operator.

Rows become bytes and sums of products are exact, so that these parts must agree bit for bit, but
for rows with a tie.
The float32 end of a layer and attention agree to a tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tests.native_package import load_native

# make .venv-dev/.native rebuilds the package, which is not on the path of the tests
LIBRARY = Path(load_native().LIBRARY)

DOMAIN = "fillmask"
NO_ACTIVATION, GELU, GELU_TANH, SILU = range(4)
SIGNED, AFTER_GELU = 128, 16  # zero points
# Largest error of Int8Linear relative to the largest magnitude among a row's terms, and of
# PackedAttention relative to the largest value, for scores up to 1. Errors of random cases are
# below 5e-7.
TOLERANCE = 2e-6
# Distance of a product from a half within which float32, with or without a fused addition, may
# round it the other way. The unit in the last place of 255 is 1.5e-5.
TIE = 2e-5

Array = NDArray[Any]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Fed:
    """An input that each run gets.

    Attributes:
        element_type: number of ONNX.
        rank: number of axes of any size, or None if the model does not say it.
    """

    element_type: int = TensorProto.FLOAT
    rank: int | None = 2


def operator_model(
    operator: str, inputs: Sequence[Array | Fed | None], outputs: int = 1, **attributes: Any
) -> bytes:
    """Return a model of one operator.

    Args:
        inputs: constants, inputs of the model and missing inputs of the operator.
        outputs: number of outputs, which have the names y0, y1 and so on.
    """
    names = [f"x{number}" if one is not None else "" for number, one in enumerate(inputs)]
    results = [f"y{number}" for number in range(outputs)]
    fed, constants = [], []
    for name, one in zip(names, inputs, strict=True):
        if isinstance(one, Fed):
            shape = None if one.rank is None else [None] * one.rank
            fed.append(helper.make_tensor_value_info(name, one.element_type, shape))
        elif one is not None:
            constants.append(numpy_helper.from_array(one, name))
    graph = helper.make_graph(
        [helper.make_node(operator, names, results, domain=DOMAIN, **attributes)],
        "one operator",
        fed,
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results],
        constants,
    )
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    serialized: bytes = model.SerializeToString()
    return serialized


def load(model: bytes, threads: int = 1, library: Path = LIBRARY, *, arena: bool = True) -> Any:
    """Return a session with the native operators.

    Args:
        arena: whether arrays share blocks of memory, where AddressSanitizer does not see an end.
    """
    options = ort.SessionOptions()
    options.enable_cpu_mem_arena = arena
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    options.register_custom_ops_library(str(library))
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run(session: Any, *fed: Array) -> list[Floats]:
    """Run a session with its inputs in the order of the operator."""
    names = [one.name for one in session.get_inputs()]
    outputs: list[Floats] = session.run(None, dict(zip(names, fed, strict=True)))
    return outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One output of Int8Linear.

    Attributes:
        weight: (K, N).
        scales: (N,).
        bias: (N,) or None.
        float_weight: (N, F) or None.
    """

    weight: NDArray[np.int8]
    scales: Floats
    bias: Floats | None = None
    float_weight: Floats | None = None
    activation: int = NO_ACTIVATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Int8Linear:
    """The operator Int8Linear with its constants.

    Attributes:
        factors: (K,) or None.
        channels: (F,), columns of x that are the float channels, or None.
        has_floats: whether each run gets the rows of the float channels.
        has_residual: whether each run gets a residual.
    """

    layers: Sequence[Layer]
    zero_point: int = SIGNED
    transposed: bool = False
    factors: Floats | None = None
    channels: Indices | None = None
    has_floats: bool = False
    has_residual: bool = False

    def inputs(self) -> list[Array | Fed | None]:
        """Return the inputs of the operator."""
        floats, residual = (Fed() if has else None for has in (self.has_floats, self.has_residual))
        inputs: list[Array | Fed | None] = [Fed(), self.factors, floats, self.channels, residual]
        for layer in self.layers:
            weight = np.ascontiguousarray(layer.weight.T) if self.transposed else layer.weight
            inputs += [weight, layer.scales, layer.bias, layer.float_weight]
        return inputs

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the operator."""
        return {
            "zero_point": self.zero_point,
            "transposed": int(self.transposed),
            "activations": [layer.activation for layer in self.layers],
        }

    def model(self) -> bytes:
        """Return a model with this operator. Its inputs are x, the floats and the residual."""
        return operator_model("Int8Linear", self.inputs(), len(self.layers), **self.attributes())

    def compute(
        self, x: Floats, floats: Floats | None = None, residual: Floats | None = None
    ) -> list[tuple[Doubles, Doubles]]:
        """Return each output (R, N) and the largest magnitude (R, 1) among the terms of a row."""
        rounded, row_scales = round_rows(x, self.factors, self.zero_point)
        if floats is None:
            floats = x[:, [] if self.channels is None else self.channels]
        results = []
        for layer in self.layers:
            sums = (rounded - self.zero_point) @ layer.weight.astype(np.int64)
            y = sums * row_scales * layer.scales.astype(np.float64)
            sizes = [np.abs(y)]
            if layer.bias is not None:
                y = y + layer.bias
                sizes.append(np.broadcast_to(np.abs(layer.bias), y.shape))
            if layer.float_weight is not None and layer.float_weight.shape[1]:
                weights = layer.float_weight.astype(np.float64)
                y = y + floats.astype(np.float64) @ weights.T
                sizes.append(np.abs(floats) @ np.abs(weights).T)
            y = activate(y, layer.activation)
            if residual is not None:
                y = y + residual
                sizes.append(np.abs(residual))
            magnitudes = np.max([size.max(axis=1, keepdims=True) for size in sizes], axis=0)
            results.append((y, magnitudes))
        return results


def round_rows(x: Floats, factors: Floats | None, zero_point: int) -> tuple[Indices, Doubles]:
    """Return the bytes (R, K) of the rows, and the scales (R, 1)."""
    products, scales = _divide_rows(x, factors, zero_point)
    return np.clip(np.rint(products) + zero_point, 0, 255).astype(np.int64), scales


def has_ties(x: Floats, factors: Floats | None, zero_point: int) -> NDArray[np.bool_]:
    """Return which rows (R,) have a number so close to a half that float32 may round it to one."""
    products, _ = _divide_rows(x, factors, zero_point)
    distances: Doubles = np.abs(products - np.floor(products) - 0.5).min(axis=1)
    return distances < TIE


def _divide_rows(x: Floats, factors: Floats | None, zero_point: int) -> tuple[Doubles, Doubles]:
    """Return the rows (R, K) divided by their scales, and the scales (R, 1)."""
    scaled = x if factors is None else x * factors
    if zero_point == SIGNED:
        steps = np.float32(127)
        bounds = np.abs(scaled).max(axis=1, keepdims=True)
    else:
        steps = np.float32(255 - zero_point)
        least = np.float32(0.171) / np.float32(zero_point) * steps
        bounds = np.maximum(scaled.max(axis=1, keepdims=True), least)
    # rows of tiny numbers are rows of zeros
    inverses = np.divide(steps, bounds, out=np.zeros_like(bounds), where=bounds >= 1e-36)
    products = scaled.astype(np.float64) * inverses.astype(np.float64)
    return products, (bounds / steps).astype(np.float64)


def activate(x: Doubles, activation: int) -> Doubles:
    """Return an activation function of each number."""
    if activation == GELU:
        error = np.vectorize(math.erf, otypes=[np.float64])(x / math.sqrt(2))
        return np.asarray(x * (1 + error) / 2)
    if activation == GELU_TANH:
        return np.asarray(x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2)
    if activation == SILU:
        return np.asarray(x * (1 + np.tanh(x / 2)) / 2)
    return x


def attention(
    queries: Floats,
    keys: Floats,
    values: Floats,
    query_texts: Indices,
    key_texts: Indices,
    heads: int,
) -> Doubles:
    """Return the attention of each query to the tokens of its text. Texts may have any order."""
    output = np.zeros(queries.shape)
    width = queries.shape[1] // heads
    for text in set(query_texts.tolist()) & set(key_texts.tolist()):
        ours, theirs = query_texts == text, key_texts == text
        for head in range(heads):
            columns = slice(head * width, (head + 1) * width)
            query, key, value = (
                rows[chosen, columns].astype(np.float64)
                for rows, chosen in ((queries, ours), (keys, theirs), (values, theirs))
            )
            scores = query @ key.T / math.sqrt(width)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            output[ours, columns] = weights / weights.sum(axis=1, keepdims=True) @ value
    return output


def attention_model(heads: int) -> bytes:
    """Return a model with the operator PackedAttention."""
    texts = Fed(TensorProto.INT64, 1)
    return operator_model("PackedAttention", [Fed(), Fed(), Fed(), texts, texts], heads=heads)
