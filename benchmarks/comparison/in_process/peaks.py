"""Peak rate of the machine's matrix products with onnxruntime's kernels.

    python -m benchmarks.comparison.in_process.peaks THREADS SECONDS

The script prints the int8 rate and the fp32 rate of all threads together, in 1e9 operations/s. Each
rate is the maximum over several shapes. Each thread computes its own product. The int8 product is
MatMulInteger of uint8 by int8. A multiplication with an addition counts as two operations.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from benchmarks.comparison.in_process.throughput import LIMIT_S, drive
from benchmarks.comparison.process import output_of
from benchmarks.comparison.results import Peak

# rows, inner length and columns of three products of encoders and of a square product
SHAPES = ((256, 768, 768), (256, 768, 3072), (256, 3072, 768), (1024, 1024, 1024))
OPSET = 17


def measure(cpus: Sequence[int], seconds: float) -> Peak:
    """Measure the peak rates of some CPUs in a separate process."""
    printed = output_of(
        "benchmarks.comparison.in_process.peaks", [str(len(cpus)), str(seconds)], cpus, LIMIT_S
    )
    int8_gops, fp32_gops = map(float, printed.split()[-2:])
    return Peak(int8_gops=int8_gops, fp32_gops=fp32_gops)


def peak_gops(
    left_type: type[np.generic], right_type: type[np.generic], threads: int, seconds: float
) -> float:
    """Return the maximum rate over all shapes, in 1e9 operations/s."""
    rng = np.random.default_rng(0)
    best = 0.0
    for rows, inner, columns in SHAPES:
        left = rng.integers(0, 100, (rows, inner)).astype(left_type)
        right = rng.integers(0, 100, (inner, columns)).astype(right_type)
        session = _session(left, right)
        product = partial(session.run, None, {"x": left})
        products_per_s = drive([(1, product)], threads, seconds)
        best = max(best, products_per_s * 2 * rows * inner * columns / 1e9)
    return best


def _session(left: NDArray[np.generic], right: NDArray[np.generic]) -> ort.InferenceSession:
    """Create a session that multiplies its input by a constant right matrix."""
    integer = left.dtype == np.uint8
    node = helper.make_node("MatMulInteger" if integer else "MatMul", ["x", "w"], ["y"])
    result = TensorProto.INT32 if integer else TensorProto.FLOAT
    graph = helper.make_graph(
        [node],
        "product",
        [
            helper.make_tensor_value_info(
                "x", helper.np_dtype_to_tensor_dtype(left.dtype), left.shape
            )
        ],
        [helper.make_tensor_value_info("y", result, (left.shape[0], right.shape[1]))],
        [numpy_helper.from_array(right, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(model)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def main() -> None:
    """Print the peak rates in int8 and fp32."""
    threads, seconds = int(sys.argv[1]), float(sys.argv[2])
    print(peak_gops(np.uint8, np.int8, threads, seconds))
    print(peak_gops(np.float32, np.float32, threads, seconds))


if __name__ == "__main__":
    main()
