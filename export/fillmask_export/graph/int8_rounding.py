"""Rounding of rows to uint8 and products of rounded rows, as nodes of a graph.

Shapes: R rows of a layer's input.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fillmask_export.graph.operators import GraphBuilder
from fillmask_export.quantization.rounding import (
    GELU_SMALLEST_STEP,
    GELU_STEPS,
    GELU_ZERO,
    UNSIGNED_ZERO,
)
from fillmask_model.quantization.rounding import INT8_MAX

CONTRIB = "com.microsoft"


class RoundingGraphBuilder(GraphBuilder):
    """Graph builder with int8 products. The arguments are those of `GraphBuilder`."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.domains[CONTRIB] = 1
        self._zero_points: dict[tuple[str, int], str] = {}

    def quantize(self, x: str, rows: str, width: int) -> tuple[str, str]:
        """Quantize rows to uint8 with zero point 128, the middle of the range.

        A row of zeros has scale 0, so its products are 0 for any rounded values.

        Returns:
            The quantized rows and their scales (R, 1).
        """
        largest = self.add("ReduceMax", [self.add("Abs", [x]), self.integers(-1)], keepdims=1)
        scales = self.add("Mul", [largest, self.scalar("one_127th", 1 / INT8_MAX)])
        return self._round(x, scales, rows, UNSIGNED_ZERO, width), scales

    def quantize_gelu(self, x: str, rows: str, width: int) -> tuple[str, str]:
        """Quantize GELU outputs to uint8 with zero point 16.

        The zero point is small, because GELU's minimum is -0.17.

        Returns:
            The quantized rows and their scales (R, 1).
        """
        largest = self.add("ReduceMax", [x, self.integers(-1)], keepdims=1)
        steps = self.add("Mul", [largest, self.scalar("gelu_step", 1 / GELU_STEPS)])
        scales = self.add("Max", [steps, self.scalar("gelu_smallest_step", GELU_SMALLEST_STEP)])
        return self._round(x, scales, rows, GELU_ZERO, width), scales

    def _round(self, x: str, scales: str, rows: str, zero: int, width: int) -> str:
        inputs = [x, scales, self._zero_point(rows, zero)]
        return self.add("QuantizeLinear", inputs, axis=1, block_size=width)

    def _zero_point(self, rows: str, zero: int) -> str:
        """Create a uint8 zero point (R, 1), which layers with the same rows share."""
        if (rows, zero) not in self._zero_points:
            one = self.constant(f"zero_{zero}", np.array([[zero]], np.uint8))
            count = self.add("Shape", [rows], end=1)
            shape = self.add("Concat", [count, self.integers(1)], axis=0)
            self._zero_points[rows, zero] = self.add("Expand", [one, shape])
        return self._zero_points[rows, zero]

    def product(self, quantized: str, columns: str, column_scales: str, zero: int) -> str:
        """Multiply rounded rows by rounded columns and by the scales of the columns."""
        one = self.scalar("one", 1.0)
        zero_point = self.constant(f"zero_point_{zero}", np.array(zero, np.uint8))
        inputs = [quantized, columns, one, column_scales, zero_point]
        return self.add("MatMulIntegerToFloat", inputs, domain=CONTRIB)
