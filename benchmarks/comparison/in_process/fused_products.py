"""Linear layers in int8: this project's operators against products of oneDNN with a fused GELU.

    .venv-comparison/bin/python -m benchmarks.comparison.in_process.fused_products

onnxruntime has no operator that quantizes rows, multiplies them and applies the scales of rows, the
bias and GELU. The served graph has one operator for each step. The script measures the linear
layers of a block on one thread in three forms: the served graph's operators, their product alone,
and the product of oneDNN (in PyTorch) with bias and GELU. The difference is the time that a fused
kernel could save. oneDNN's form includes neither the quantization nor the scales of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import onnx
import onnxruntime as ort
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from benchmarks.comparison.in_process.throughput import median_s
from benchmarks.comparison.page.table import table

ROWS = (1, 16, 64, 160, 256)
# width and feed-forward width
MODELS = {"minilm": (384, 1536), "bert-base": (768, 3072)}
ZERO_POINT, INT8_MAX = 128, 127
OPSET = 21
_RUNS = 200
# PyTorch's call of oneDNN takes longer than onnxruntime's call of an operator
_CALL_WIDTH = 16


def main() -> None:
    """Print a table with the times of all linear layers of a block."""
    torch.set_num_threads(1)
    print(table(["model, rows", "operators us", "product alone us", "oneDNN us"], _rows()))


def _rows() -> list[list[str]]:
    rows = []
    for model, (D, F) in MODELS.items():
        layers = [(D, D, False)] * 4 + [(D, F, True), (F, D, False)]
        for R in ROWS:
            call_us = _onednn_us(R, _CALL_WIDTH, _CALL_WIDTH, gelu=False)
            chain = sum(_chain_us(R, *layer) for layer in layers)
            product = sum(_product_us(R, K, N) for K, N, _ in layers)
            onednn = sum(_onednn_us(R, K, N, gelu=gelu) - call_us for K, N, gelu in layers)
            rows.append([f"{model}, {R}", f"{chain:.0f}", f"{product:.0f}", f"{onednn:.0f}"])
    return rows


def _weights(K: int, N: int) -> NDArray[np.int8]:
    return np.random.default_rng(0).integers(-INT8_MAX, INT8_MAX + 1, (K, N), np.int8)


def _product_us(R: int, K: int, N: int) -> float:
    session = _session(_product_nodes("x"), K, N, TensorProto.UINT8)
    x_RK = np.random.default_rng(1).integers(0, 256, (R, K), np.uint8)
    return _median_us(partial(session.run, None, {"x": x_RK}))


def _chain_us(R: int, K: int, N: int, gelu: bool) -> float:  # noqa: FBT001 - an element of a tuple
    nodes = [
        helper.make_node("Abs", ["x"], ["magnitudes"]),
        helper.make_node("ReduceMax", ["magnitudes", "last_axis"], ["largest"], keepdims=1),
        helper.make_node("Mul", ["largest", "one_127th"], ["row_scales"]),
        helper.make_node("Shape", ["x"], ["rows"], end=1),
        helper.make_node("Concat", ["rows", "one_column"], ["shape"], axis=0),
        helper.make_node("Expand", ["zero_grid", "shape"], ["zeros"]),
        helper.make_node(
            "QuantizeLinear", ["x", "row_scales", "zeros"], ["quantized"], axis=1, block_size=K
        ),
        *_product_nodes("quantized"),
        helper.make_node("Mul", ["product", "row_scales"], ["scaled"]),
        helper.make_node("Add", ["scaled", "bias"], ["sum"]),
    ]
    if gelu:
        nodes.append(helper.make_node("Gelu", ["sum"], ["activations"]))
    session = _session(nodes, K, N, TensorProto.FLOAT)
    x_RK = np.random.default_rng(1).standard_normal((R, K), np.float32)
    return _median_us(partial(session.run, None, {"x": x_RK}))


def _onednn_us(R: int, K: int, N: int, *, gelu: bool) -> float:
    weight = torch.from_numpy(_weights(K, N).T.copy())
    packed = torch.ops.onednn.qlinear_prepack(weight, None)
    scales, zeros = torch.full((N,), 1e-3), torch.zeros(N, dtype=torch.int8)
    x_RK = torch.randint(0, 256, (R, K), dtype=torch.uint8)
    operation, algorithm = ("gelu", "none") if gelu else ("none", "")
    with torch.inference_mode():
        return _median_us(
            partial(
                torch.ops.onednn.qlinear_pointwise,
                *(x_RK, 1.0, ZERO_POINT, packed, scales, zeros, torch.zeros(N)),
                *(1.0, 0, torch.float32, operation, [], algorithm),
            )
        )


def _product_nodes(x: str) -> list[onnx.NodeProto]:
    inputs = [x, "weight", "one", "column_scales", "zero_point"]
    return [helper.make_node("MatMulIntegerToFloat", inputs, ["product"], domain="com.microsoft")]


def _session(nodes: list[onnx.NodeProto], K: int, N: int, input_type: int) -> ort.InferenceSession:
    """Create a session of nodes with the input x (R, K)."""
    constants = {
        "weight": _weights(K, N),
        "column_scales": np.full(N, 1e-3, np.float32),
        "bias": np.zeros(N, np.float32),
        "one": np.float32(1),
        "one_127th": np.array([1 / INT8_MAX], np.float32),
        "zero_point": np.uint8(ZERO_POINT),
        "zero_grid": np.full((1, 1), ZERO_POINT, np.uint8),
        "last_axis": np.array([-1]),
        "one_column": np.array([1]),
    }
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", input_type, ["R", K])],
        [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, ["R", N])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3  # no warnings about constants that a form does not use
    return ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _median_us(function: Callable[[], object]) -> float:
    return 1e6 * median_s(function, _RUNS)


if __name__ == "__main__":
    main()
