"""The graph's parts in int8: row-wise linear maps and one blockwise table.

Only operators of onnxruntime's CPU provider that are fast with VNNI or dot-product instructions:
`MatMulIntegerToFloat`, `MatMulNBits`, `GatherBlockQuantized` (domain com.microsoft).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from export.calibration import InputStatistics
from export.int8_plan import Int8Linear, plan_linear
from export.operators import TABLE, GraphBuilder
from export.quantize import LARGEST, UNSIGNED_ZERO, QuantizedTable, quantize_table
from model.config import EncoderConfig

CONTRIB = "com.microsoft"
TINY = 1e-12  # the scale of a row of zeros


class Int8GraphBuilder(GraphBuilder):
    """Builds linear maps and the table in int8.

    Args:
        config: the encoder's sizes and choices.
        weights: its tensors by name, float32.
        statistics: of each linear map's input, from `export.calibration`.
    """

    def __init__(
        self,
        config: EncoderConfig,
        weights: dict[str, NDArray[np.float32]],
        statistics: dict[str, InputStatistics],
    ) -> None:
        super().__init__(config, weights)
        self.statistics = statistics
        self.domains[CONTRIB] = 1

    @cached_property
    def _blocks(self) -> QuantizedTable:
        return quantize_table(self.weights[TABLE])

    def _table_scales(self) -> str:
        return self.constant("embeddings.word.scales", self._blocks.scales)

    def lookup(self, ids: str) -> str:
        """Rows of the table, dequantized as they are gathered."""
        table = self._blocks
        inputs = [
            self.constant(TABLE, table.blocks),
            ids,
            # folded when the graph is loaded; the file holds the scales once
            self.add("Unsqueeze", [self._table_scales(), self.integers(-1)]),
        ]
        blocks = self.add(
            "GatherBlockQuantized",
            inputs,
            domain=CONTRIB,
            bits=8,
            gather_axis=0,
            quantize_axis=2,
            block_size=table.block,
        )
        width = table.blocks.shape[1] * table.block
        rows = self.add("Reshape", [blocks, self.integers(-1, width)])
        if width == table.d_model:
            return rows
        end = self.integers(table.d_model)
        return self.add("Slice", [rows, self.integers(0), end, self.integers(1)])

    def vocabulary(self, rows: str) -> str:
        """Logits of rows, from the same blocks the lookup reads."""
        table = self._blocks
        V, D = len(table.blocks), table.d_model
        inputs = [rows, self.constant(TABLE, table.blocks), self._table_scales()]
        if (bias := self.bias("head_bias")) is not None:
            inputs += ["", "", self.constant("head_bias", bias)]
        # level 4 rounds the input to int8 in blocks of its own row: fast, and no neighbour matters
        return self.add(
            "MatMulNBits",
            inputs,
            ["logits"],
            domain=CONTRIB,
            K=D,
            N=V,
            bits=8,
            block_size=table.block,
            accuracy_level=4,
        )

    def linears(self, x: str, names: Sequence[str], *, from_gelu: bool = False) -> str:
        """Linear maps of one input, side by side: (R, in) to (R, sum of out)."""
        key = "+".join(names)
        weight, bias = self.side_by_side(names)
        plan = plan_linear(weight, bias, self.statistics[names[0]], from_gelu=from_gelu)
        product = self._product(x, key, plan)
        floats = self.add(
            "Gather", [x, self.constant(f"{key}.float_channels", plan.float_channels)], axis=1
        )
        float_weight = self.constant(f"{key}.float_weight", plan.float_weight)
        rest = self.add(
            "Gemm", [floats, float_weight, self.constant(f"{key}.bias", plan.bias)], transB=1
        )
        return self.add("Add", [product, rest])

    def _product(self, x: str, key: str, plan: Int8Linear) -> str:
        """The rounded part: row scales times the integer product times the weights' scales."""
        x = self.add("Mul", [x, self.constant(f"{key}.factor", plan.factor)])
        if plan.shift is None:
            largest = self.add("ReduceMax", [self.add("Abs", [x]), self.integers(-1)], keepdims=0)
            steps, zero = LARGEST, UNSIGNED_ZERO
        else:
            x = self.add("Add", [x, self.constant(f"{key}.shift", plan.shift)])
            largest = self.add("ReduceMax", [x, self.integers(-1)], keepdims=0)
            steps, zero = 2 * LARGEST + 1, 0
        largest = self.add("Max", [largest, self.scalar("tiny", TINY)])
        scales_R = self.add("Mul", [largest, self.scalar(f"one_over_{steps}", 1 / steps)])
        zero_point = self.constant(f"zero_{zero}", np.array(zero, np.uint8))
        zeros_R = self.add("Expand", [zero_point, self.add("Shape", [scales_R])])
        rounded = self.add("QuantizeLinear", [x, scales_R, zeros_R], axis=0)
        product = self.add(
            "MatMulIntegerToFloat",
            [
                rounded,
                self.constant(f"{key}.weight", plan.rows.values.T),
                self.scalar("one", 1.0),
                self.constant(f"{key}.scales", plan.rows.scales),
                zero_point,
            ],
            domain=CONTRIB,
        )
        return self.add("Mul", [product, self.add("Unsqueeze", [scales_R, self.integers(-1)])])
