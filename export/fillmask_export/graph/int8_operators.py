"""Int8 linear layers and embedding table of the served graph, with a scale per row.

Linear layers use `MatMulIntegerToFloat` (domain com.microsoft). This operator of onnxruntime's CPU
provider multiplies with VNNI or dot-product instructions and applies the weights' scales. The
operator accepts only a single scale for its left input, so a `Mul` node applies the rows' scales
later.

Shapes: R rows of a layer's input.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fillmask_export.graph.int8_rounding import CONTRIB, RoundingGraphBuilder
from fillmask_export.graph.weight_file import WeightFile
from fillmask_export.quantization.rounding import (
    GELU_ZERO,
    UNSIGNED_ZERO,
    QuantizedRows,
    quantize_rows,
)
from fillmask_export.quantization.weights import Int8Weights
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import TABLE, output_table
from fillmask_model.quantization.layer_precision import VOCABULARY


class Int8GraphBuilder(RoundingGraphBuilder):
    """Graph builder with linear layers and the embedding table in int8.

    Args:
        weights: float32 tensors of the encoder by name.
        int8: rounding of the weights.
        file: file for initializers. Without a file, the graph contains the initializers.
    """

    def __init__(
        self,
        config: EncoderConfig,
        weights: dict[str, NDArray[np.float32]],
        int8: Int8Weights,
        file: WeightFile | None = None,
    ) -> None:
        super().__init__(config, weights, file)
        self._int8 = int8
        self._column_scales: dict[str, str] = {}
        self._output = output_table(config)
        self._table_columns: str | None = None
        if self._int8.rounds(VOCABULARY) and len(self.vocabulary_parts) == 1:
            # outside the loop over masks, so that the runtime transposes once, at load time
            self._table_columns = self.add("Transpose", [self._values(self._output)], perm=[1, 0])

    @cached_property
    def _tables(self) -> dict[str, QuantizedRows]:
        tables = {}
        if self._int8.rounds(VOCABULARY):
            tables[self._output] = self._int8.rows(VOCABULARY, self.weights[self._output])
        # A tied table has the head's factors. The logits gain more accuracy from these factors than
        # the lookup loses.
        if TABLE not in tables:
            tables[TABLE] = quantize_rows(self.weights[TABLE])
        return tables

    def _values(self, table: str) -> str:
        return self.constant(table, self._tables[table].values)

    def _scales(self, table: str) -> str:
        return self.constant(f"{table}.scales", self._tables[table].scales)

    def lookup(self, ids: str) -> str:
        parts = (self._values(TABLE), self._scales(TABLE))
        gathered = [self.add("Gather", [part, ids]) for part in parts]
        rows = self.add("DequantizeLinear", gathered, axis=0)
        has_factors = self._output == TABLE and self._int8.rounds(VOCABULARY)
        return self.add("Mul", [rows, self._table_factors()]) if has_factors else rows

    def vocabulary(self, x: str, rows: str, part: slice) -> str:
        """Compute the logits of a part of the vocabulary.

        A tied encoder uses the table of the lookup.
        """
        quantized, scales = self._quantize_head(x, rows)
        bias, bias_name = self.bias("head_bias"), "head_bias"
        if self._table_columns is not None:
            steps = self._scales(self._output)
            logits = self.product(quantized, self._table_columns, steps, UNSIGNED_ZERO)
        else:
            logits = self._part_logits(quantized, part)
            bias, bias_name = None if bias is None else bias[part], f"{bias_name}.{part.start}"
        return self.add_bias(self.add("Mul", [logits, scales]), bias_name, bias)

    def columns(self, parts: Sequence[slice]) -> list[str]:
        """Return the transposed parts of the table, which the runtime transposes at load time."""
        table = self._tables[self._output]
        names = []
        for part in parts:
            rows = self.constant_rows(self._output, table.values, part)
            names.append(self.add("Transpose", [rows], perm=[1, 0]))
            self._column_scales[names[-1]] = self.constant(
                f"{self._output}.scales.{part.start}", table.scales[part]
            )
        return names

    def column_products(self, x: str, rows: str, columns: Sequence[str]) -> list[str]:
        quantized, scales = self._quantize_head(x, rows)
        return [
            self.add(
                "Mul",
                [self.product(quantized, part, self._column_scales[part], UNSIGNED_ZERO), scales],
            )
            for part in columns
        ]

    def _part_logits(self, quantized: str, part: slice) -> str:
        """Multiply the input rows by some rows of the table.

        QGemm computes the same products as MatMulIntegerToFloat, but needs no transposed copy of
        the table.
        """
        table = self._tables[self._output]
        steps = table.scales[part]
        inputs = [
            quantized,
            self.scalar("one", 1.0),
            self.constant(f"zero_point_{UNSIGNED_ZERO}", np.array(UNSIGNED_ZERO, np.uint8)),
            self.constant_rows(self._output, table.values, part),
            self.constant(f"{self._output}.scales.{part.start}", steps),
            self.constant(f"zeros_{len(steps)}", np.zeros(len(steps), np.int8)),
        ]
        return self.add("QGemm", inputs, domain=CONTRIB, transB=1)

    def _quantize_head(self, x: str, rows: str) -> tuple[str, str]:
        x = self.add("Mul", [x, self._table_factors()])
        return self.quantize(x, rows, self.config.table_width)

    def linears(self, x: str, names: Sequence[str], rows: str) -> list[str]:
        """Add linear layers with the same input, which the graph quantizes once."""
        key = "+".join(names)
        if key.endswith(".output"):
            # the values' weights already contain the factors of this layer
            quantized, scales = self.quantize(x, rows, self.config.d_model)
        else:
            quantized, scales = self._quantize_smoothed(x, key, names[0], rows)
        floats = self._float_channels(x, key, names[0])
        return [self._linear(quantized, scales, floats, name) for name in names]

    def _linear(self, quantized: str, scales: str, floats: str | None, name: str) -> str:
        weight = self.weights[f"{name}.weight"]
        part = self._int8.rows(name, weight)
        float_weight = weight[:, self._int8.float_channels(name)]
        if name.endswith(".value"):
            factors = self._int8.factors(f"{name.removesuffix('value')}output")
            part = QuantizedRows(part.values, part.scales * factors)
            float_weight = float_weight * factors[:, None]
        product = self._scaled_product(quantized, scales, name, part, UNSIGNED_ZERO)
        return self._add_float_part(product, floats, name, float_weight)

    def feed_forward(self, x: str, name: str, rows: str) -> str:
        inward, outer = f"{name}.ffn_in", f"{name}.ffn_out"
        quantized, scales = self._quantize_smoothed(x, inward, inward, rows)
        if self.config.gated_ffn:
            return self._gated_feed_forward(quantized, scales, name, rows)
        inner_rows = self._int8.rows(inward, self.weights[f"{inward}.weight"])
        float_channels = self._int8.float_channels(outer)
        int8_channels = self._int8.int8_channels(outer)
        bias = self.folded_bias(inward)

        def hidden(kind: str, channels: NDArray[np.int64]) -> str:
            part = QuantizedRows(inner_rows.values[channels], inner_rows.scales[channels])
            key = f"{inward}.{kind}"
            y = self._scaled_product(quantized, scales, key, part, UNSIGNED_ZERO)
            y = self.add_bias(y, f"{key}.bias", None if bias is None else bias[channels])
            return self.activate(y, self.config.activation)

        floats = hidden("float32", float_channels) if len(float_channels) else None
        inner = hidden("int8", int8_channels)
        quantize, zero = (
            (self.quantize, UNSIGNED_ZERO)
            if self.config.activation == "silu"  # whose minimum is lower than GELU's
            else (self.quantize_gelu, GELU_ZERO)
        )
        quantized, scales = quantize(inner, rows, len(int8_channels))
        weight = self.weights[f"{outer}.weight"]
        all_rows = self._int8.rows(outer, weight)
        part = QuantizedRows(all_rows.values[:, int8_channels], all_rows.scales)
        product = self._scaled_product(quantized, scales, outer, part, zero)
        float_weight = weight[:, float_channels]
        return self._add_float_part(product, floats, outer, float_weight)

    def _gated_feed_forward(self, quantized: str, scales: str, name: str, rows: str) -> str:
        outer = f"{name}.ffn_out"
        # the gate's weights contain the factors of the output layer's input
        output_factors = {"ffn_in": None, "ffn_gate": self._int8.factors(outer)}
        inner = []
        for part, factors in output_factors.items():
            key = f"{name}.{part}"
            weight = self._int8.rows(key, self.weights[f"{key}.weight"])
            bias = self.folded_bias(key)
            if factors is not None:
                weight = QuantizedRows(weight.values, weight.scales * factors)
                bias = None if bias is None else bias * factors
            product = self._scaled_product(quantized, scales, key, weight, UNSIGNED_ZERO)
            inner.append(self.add_bias(product, f"{key}.bias", bias))
        gated = self.add("Mul", [self.activate(inner[0], self.config.activation), inner[1]])
        quantized, scales = self.quantize(gated, rows, self.config.d_ff)
        weight = self._int8.rows(outer, self.weights[f"{outer}.weight"])
        product = self._scaled_product(quantized, scales, outer, weight, UNSIGNED_ZERO)
        return self.add_bias(product, f"{outer}.bias", self.folded_bias(outer))

    def _table_factors(self) -> str:
        return self.constant(f"{self._output}.factors", self._int8.factors(VOCABULARY))

    def _float_channels(self, x: str, key: str, name: str) -> str | None:
        """Gather a layer's float32 input channels.

        Returns:
            Name of the tensor, or None for a layer without such channels.
        """
        channels = self._int8.float_channels(name)
        if not len(channels):
            return None
        return self.add("Gather", [x, self.constant(f"{key}.float32", channels)], axis=1)

    def _add_float_part(
        self, product: str, floats: str | None, name: str, weight: NDArray[np.float32]
    ) -> str:
        """Add a layer's bias and float32 product to its int8 product."""
        bias = self.folded_bias(name)
        if floats is None:
            return self.add_bias(product, f"{name}.bias", bias)
        columns = self.constant(f"{name}.float32_weight", weight)
        return self.add("Add", [product, self.gemm(floats, columns, f"{name}.bias", bias)])

    def _quantize_smoothed(self, x: str, key: str, name: str, rows: str) -> tuple[str, str]:
        """Multiply rows by a layer's factors and quantize the products."""
        factors = self._int8.factors(name)
        x = self.add("Mul", [x, self.constant(f"{key}.factors", factors)])
        return self.quantize(x, rows, len(factors))

    def _scaled_product(
        self, quantized: str, scales: str, name: str, weight: QuantizedRows, zero: int
    ) -> str:
        product = self.product(
            quantized,
            self.constant(f"{name}.weight", weight.values.T),
            self.constant(f"{name}.scales", weight.scales),
            zero,
        )
        return self.add("Mul", [product, scales])
