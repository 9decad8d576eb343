"""Random models of the native operators, valid and invalid.

    python -m tests.native.fuzz --seconds 600 --seed 0

onnxruntime may refuse a model or its inputs, but must not crash. Outputs of valid models must agree
with the oracle. A library with AddressSanitizer (`--library`) also finds reads and writes outside
of arrays.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tests.native.oracle import (
    AFTER_GELU,
    LIBRARY,
    SIGNED,
    TOLERANCE,
    Array,
    Fed,
    Floats,
    Int8Linear,
    Layer,
    attention,
    has_ties,
    load,
    operator_model,
    run,
)

SIZES = (1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 129, 300)
INTEGERS = (-(2**63), -(2**31), -1, 0, 1, 2, 3, 4, 16, 17, 127, 128, 2**31, 2**32 + 128, 2**63 - 1)
TYPES = (np.float32, np.float64, np.float16, np.int8, np.uint8, np.int32, np.int64, np.bool_)
ELEMENT_TYPES = {
    np.dtype(one): onnx.helper.np_dtype_to_tensor_dtype(np.dtype(one)) for one in TYPES
}


@dataclass(slots=True)
class Case:
    """A model of one operator and the inputs of its runs.

    Attributes:
        operator: its name.
        inputs: constants, arrays that a run gets, and missing inputs, in the operator's order.
        fed: places of the arrays that a run gets.
        ranked: whether the model says the ranks of its inputs.
    """

    operator: str
    inputs: list[Array | None]
    fed: set[int]
    outputs: int
    attributes: dict[str, Any]
    ranked: bool = True


class Fuzzer:
    """Source of random cases.

    Args:
        library: library with the operators.

    Attributes:
        counts: number of cases per result.
    """

    def __init__(self, seed: int, library: Path = LIBRARY) -> None:
        self._random = np.random.default_rng(seed)
        self._library = library
        self.counts: Counter[str] = Counter()

    def step(self) -> None:
        """Run one random case.

        Raises:
            AssertionError: an output differs from the oracle.
        """
        linear = self._chance(0.7)
        operator = self._linear() if linear else None
        case = self._linear_case(operator) if operator else self._attention_case()
        broken = self._chance(0.6)
        if broken:
            for _ in range(1 + self._below(3) // 2):
                self._break(case)
        threads = 1 + self._below(2)
        fed = [case.inputs[place] for place in sorted(case.fed)]
        arrays = [array for array in fed if array is not None]
        try:
            session = load(self._model(case), threads, self._library, arena=False)
        except Exception:  # onnxruntime's exceptions have no public base class
            if not broken:
                raise
            self.counts[f"{case.operator} refused at load"] += 1
            return
        try:
            outputs = run(session, *arrays)
        except Exception:
            if not broken:
                raise
            self.counts[f"{case.operator} refused at run"] += 1
            return
        if broken:
            self.counts[f"{case.operator} accepted after changes"] += 1
            return
        self.counts[f"{case.operator} compared"] += 1
        expected = self._expected_linear(operator, arrays) if operator else _expected(case)
        assert len(outputs) == len(expected)
        for output, (y, tolerance) in zip(outputs, expected, strict=True):
            assert output.shape == y.shape
            agrees = np.abs(output - y) <= tolerance
            if operator is not None and isinstance(x := case.inputs[0], np.ndarray):
                agrees = agrees[~has_ties(x, operator.factors, operator.zero_point)]
            assert agrees.all(), f"{case.attributes}, {y.shape}"

    def _below(self, end: int) -> int:
        return int(self._random.integers(end))

    def _chance(self, probability: float) -> bool:
        return bool(self._random.random() < probability)

    def _size(self) -> int:
        return int(self._random.choice(SIZES))

    def _floats(self, *shape: int) -> Floats:
        size = 10 ** self._random.uniform(-3, 3)
        return np.asarray(size * self._random.standard_normal(shape), np.float32)

    def _linear(self) -> Int8Linear:
        inputs, count = self._size(), self._below(6) if self._chance(0.5) else 0
        layers = [self._layer(inputs, count) for _ in range(1 + self._below(3))]
        has_floats = any(one.float_weight is not None for one in layers) and self._chance(0.4)
        return Int8Linear(
            layers=layers,
            zero_point=AFTER_GELU if self._chance(0.3) else SIGNED,
            transposed=self._chance(0.4),
            factors=self._floats(inputs) if self._chance(0.4) else None,
            channels=None if has_floats else self._random.integers(0, inputs, count),
            has_floats=has_floats,
            has_residual=len(layers) == 1 and self._chance(0.5),
        )

    def _layer(self, inputs: int, floats: int) -> Layer:
        outputs = self._size()
        return Layer(
            weight=self._random.integers(-128, 128, (inputs, outputs), np.int8),
            scales=self._floats(outputs),
            bias=self._floats(outputs) if self._chance(0.6) else None,
            float_weight=self._floats(outputs, floats) if floats and self._chance(0.7) else None,
            activation=self._below(4),
        )

    def _linear_case(self, operator: Int8Linear) -> Case:
        rows = self._below(70) if self._chance(0.9) else self._below(400)
        inputs = operator.inputs()
        layer = operator.layers[0]
        weights = [one.float_weight for one in operator.layers if one.float_weight is not None]
        columns = weights[0].shape[1] if weights else 0
        shapes = {0: len(layer.weight), 2: columns, 4: layer.weight.shape[1]}
        fed = {place for place, one in enumerate(inputs) if isinstance(one, Fed)}
        arrays = [
            self._floats(rows, shapes[place]) if isinstance(one, Fed) else one
            for place, one in enumerate(inputs)
        ]
        count = len(operator.layers)
        return Case("Int8Linear", arrays, fed, count, operator.attributes(), self._chance(0.5))

    def _attention_case(self) -> Case:
        heads, width = 1 + self._below(4), 16 * (1 + self._below(6))
        lengths = self._random.integers(0, self._size(), self._below(6))
        keys = np.repeat(np.sort(self._random.integers(-5, 5, len(lengths))), lengths)
        queries = self._random.integers(-5, 5, self._below(80))
        if self._chance(0.5):
            queries = np.sort(queries)
        arrays: list[Array | None] = [
            self._random.standard_normal((len(texts), heads * width), np.float32)
            for texts in (queries, keys, keys)
        ]
        arrays += [queries, keys]
        fed = set(range(5))
        return Case("PackedAttention", arrays, fed, 1, {"heads": heads}, self._chance(0.5))

    def _expected_linear(
        self, operator: Int8Linear, arrays: list[Array]
    ) -> list[tuple[Array, Array]]:
        rest = iter(arrays)
        x = next(rest)
        floats = next(rest) if operator.has_floats else None
        residual = next(rest) if operator.has_residual else None
        return [(y, TOLERANCE * most) for y, most in operator.compute(x, floats, residual)]

    def _break(self, case: Case) -> None:
        """Make one random change, after which a case may still be valid."""
        place, change = self._below(len(case.inputs) + 1), self._below(9)
        if case.fed and self._chance(0.4):  # most other changes already fail at the load
            place, change = sorted(case.fed)[self._below(len(case.fed))], 5 + self._below(2)
        array = case.inputs[place] if place < len(case.inputs) else None
        if change == 0:
            self._break_attribute(case)
        elif change == 1:
            case.outputs = self._below(5)
        elif place == len(case.inputs):
            case.inputs.append(self._any_array())
        elif array is None:
            case.inputs[place] = self._any_array()
        elif change == 2:
            case.inputs[place] = None
            case.fed.discard(place)
        elif change == 3:
            case.fed ^= {place}  # a constant becomes an input of the model, or the reverse
        else:
            case.inputs[place] = self._changed(array, change)

    def _changed(self, array: Array, change: int) -> Array:
        """Return an array with another type, shape or number, or any other array."""
        if change == 4:
            with np.errstate(all="ignore"):
                return array.astype(TYPES[self._below(len(TYPES))])
        if change == 5:
            return self._reshaped(array)
        if change == 6 and array.size:
            values = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, *INTEGERS)
            kept = array.copy()
            with np.errstate(all="ignore"):
                value = np.asarray(values[self._below(len(values))]).astype(array.dtype)
            kept.flat[self._below(array.size)] = value
            return kept
        return self._any_array()

    def _break_attribute(self, case: Case) -> None:
        if not case.attributes:
            return
        name = str(self._random.choice(sorted(case.attributes)))
        integers = [INTEGERS[self._below(len(INTEGERS))] for _ in range(1 + self._below(4))]
        options: list[Any] = [None, integers[0], integers, 1.5, [0.5], "one", integers[0]]
        value = options[self._below(len(options))]
        if value is None:
            del case.attributes[name]
        else:
            case.attributes[name] = value

    def _reshaped(self, array: Array) -> Array:
        """Return an array with another rank or with another size of one axis."""
        change, axis = self._below(5), self._below(max(1, array.ndim))
        if change == 0:
            return array[None]
        if change == 1 or array.ndim == 0:
            return array.reshape(-1)
        if change == 2:
            return np.ascontiguousarray(array.T)
        lengths = (0, 1, max(0, array.shape[axis] - 1), array.shape[axis] + 1, 1000)
        shape = list(array.shape)
        shape[axis] = lengths[self._below(len(lengths))]
        return np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)

    def _any_array(self) -> Array:
        shape = [int(self._random.choice((0, 1, 2, 5, 16, 64))) for _ in range(self._below(4))]
        array = np.asarray(self._random.integers(-3, 120, shape))
        return array.astype(TYPES[self._below(len(TYPES))])

    def _model(self, case: Case) -> bytes:
        inputs: list[Array | Fed | None] = []
        for place, one in enumerate(case.inputs):
            if one is None or place not in case.fed:
                inputs.append(one)
            else:
                element_type = ELEMENT_TYPES[one.dtype]
                inputs.append(Fed(int(element_type), one.ndim if case.ranked else None))
        return operator_model(case.operator, inputs, case.outputs, **case.attributes)


def _expected(case: Case) -> list[tuple[Array, Array]]:
    """Return the outputs of attention, whose inputs nothing has changed."""
    queries, keys, values, query_texts, key_texts = (one for one in case.inputs if one is not None)
    scores = np.abs(queries).max(initial=1) * np.abs(keys).max(initial=1)
    tolerance = TOLERANCE * scores * np.abs(values).max(initial=0)
    heads = case.attributes["heads"]
    return [(attention(queries, keys, values, query_texts, key_texts, heads), tolerance)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--library", type=Path, default=LIBRARY)
    options = parser.parse_args()
    fuzzer = Fuzzer(options.seed, options.library)
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        fuzzer.step()
    for result, count in sorted(fuzzer.counts.items()):
        sys.stdout.write(f"{result}: {count}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
