"""The operator Int8Linear in onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from tests.native.oracle import (
    AFTER_GELU,
    GELU,
    GELU_TANH,
    NO_ACTIVATION,
    SIGNED,
    SILU,
    TOLERANCE,
    Array,
    Fed,
    Floats,
    Indices,
    Int8Linear,
    Layer,
    load,
    operator_model,
    run,
)

WIDTHS = (1, 3, 15, 16, 17, 63, 64, 65, 100, 129)
ACTIVATIONS = (NO_ACTIVATION, GELU, GELU_TANH, SILU)
# from one product to several blocks of rows per thread
BATCHES = (1, 2, 5, 6, 7, 16, 17, 24, 32, 33, 64, 96, 97, 200)


def rng(*seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def random_rows(rows: int, columns: int, seed: int = 0) -> Floats:
    numbers = rng(rows, columns, seed)
    scales = 10 ** numbers.uniform(-2, 2, (rows, 1))
    return np.asarray(scales * numbers.standard_normal((rows, columns)), np.float32)


def random_layer(
    inputs: int, outputs: int, activation: int = 0, *, floats: int = 0, seed: int = 0
) -> Layer:
    numbers = rng(inputs, outputs, activation, floats, seed)
    return Layer(
        weight=numbers.integers(-128, 128, (inputs, outputs), np.int8),
        scales=numbers.uniform(1e-4, 1e-2, outputs).astype(np.float32),
        bias=numbers.standard_normal(outputs).astype(np.float32),
        float_weight=numbers.standard_normal((outputs, floats)).astype(np.float32),
        activation=activation,
    )


def check(
    operator: Int8Linear,
    x: Floats,
    floats: Floats | None = None,
    residual: Floats | None = None,
    session: Any = None,
) -> None:
    fed = [one for one in (x, floats, residual) if one is not None]
    outputs = run(session or load(operator.model()), *fed)
    expected = operator.compute(x, floats, residual)
    assert len(outputs) == len(expected)
    for output, (y, magnitudes) in zip(outputs, expected, strict=True):
        assert output.shape == y.shape
        assert output.dtype == np.float32
        assert (np.abs(output - y) <= TOLERANCE * magnitudes).all()


@pytest.mark.parametrize("inputs", WIDTHS)
def test_widths(inputs: int) -> None:
    for columns in WIDTHS:
        check(Int8Linear(layers=[random_layer(inputs, columns)]), random_rows(7, inputs))


@pytest.mark.parametrize("zero_point", [SIGNED, AFTER_GELU])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_each_number_of_rows(activation: int, zero_point: int) -> None:
    layer = random_layer(67, 70, activation)
    operator = Int8Linear(layers=[layer], zero_point=zero_point, has_residual=True)
    session = load(operator.model())
    for rows in (*range(1, 65), 96, 97, 289):
        x = random_rows(rows, 67)
        check(operator, x, residual=random_rows(rows, 70), session=session)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_of_small_and_large_numbers(activation: int) -> None:
    # a bias and no products, so that the oracle's magnitudes are those of the activation's input
    ends = 10.0 ** np.arange(-30, 31, dtype=np.float64)
    middle = np.linspace(-12, 12, 1001)
    bias = np.concatenate([-ends, ends, middle]).astype(np.float32)
    for start in range(0, len(bias), 100):
        layer = Layer(
            weight=np.zeros((1, len(bias[start : start + 100])), np.int8),
            scales=np.ones_like(bias[start : start + 100]),
            bias=bias[start : start + 100],
            activation=activation,
        )
        operator = Int8Linear(layers=[layer])
        x = np.zeros((1, 1), np.float32)
        [output] = run(load(operator.model()), x)
        [(expected, _)] = operator.compute(x)
        error = np.abs(output - expected)
        assert (error <= TOLERANCE * np.abs(bias[start : start + 100])).all()


def test_output_without_a_name() -> None:
    layers = [random_layer(20, 17, number) for number in range(3)]
    operator = Int8Linear(layers=layers)
    x = random_rows(8, 20)
    session = load(operator.model())
    [middle] = session.run(["y1"], {"x0": x})
    assert np.array_equal(middle, run(session, x)[1])


@pytest.mark.parametrize("weight", [-128, 127])
@pytest.mark.parametrize("zero_point", [SIGNED, AFTER_GELU])
def test_largest_sums_fit_into_32_bits(zero_point: int, weight: int) -> None:
    layer = Layer(
        weight=np.full((65536, 2), weight, np.int8),
        scales=np.ones(2, np.float32),
    )
    operator = Int8Linear(layers=[layer], zero_point=zero_point)
    signs = np.repeat(np.array([[1], [-1], [1000]], np.float32), 65536, axis=1)
    check(operator, signs)


@pytest.mark.parametrize("zero_point", [SIGNED, AFTER_GELU])
def test_numbers_far_below_zero(zero_point: int) -> None:
    # After GELU there are none. They become the smallest byte.
    x = np.array([[-(2.0**power), 1.0] for power in range(-20, 127)], np.float32)
    check(Int8Linear(layers=[random_layer(2, 3)], zero_point=zero_point), x)


def test_ties_round_to_even() -> None:
    # the bound 127 has steps of 1, and the weight of each input selects its own output
    x = np.append(np.arange(-100, 100) + 0.5, 127).astype(np.float32)[None]
    identity = np.eye(x.shape[1], dtype=np.int8)
    layer = Layer(weight=identity, scales=np.ones(x.shape[1], np.float32))
    [output] = run(load(Int8Linear(layers=[layer]).model()), x)
    assert np.array_equal(output, np.rint(x))


@pytest.mark.parametrize("zero_point", [SIGNED, AFTER_GELU])
def test_batches_without_rows(zero_point: int) -> None:
    operator = Int8Linear(
        layers=[random_layer(20, 17, GELU, floats=2)],
        zero_point=zero_point,
        has_floats=True,
        has_residual=True,
    )
    check(operator, random_rows(0, 20), random_rows(0, 2), random_rows(0, 17))


@pytest.mark.parametrize("zero_point", [SIGNED, AFTER_GELU])
def test_rows_of_zeros_and_of_tiny_numbers(zero_point: int) -> None:
    # 127 divided by a number below 4e-37 is infinite in float32
    layer = random_layer(30, 65)
    operator = Int8Linear(
        layers=[Layer(weight=layer.weight, scales=np.full(65, 1e33, np.float32))],
        zero_point=zero_point,
    )
    sizes = np.array([0.0, 1e-45, 1e-40, 1.1e-38, 1.2e-38, 1e-37, 3e-37, 9e-37, 2e-36, 1e-30])
    pattern = random_rows(1, 30) / np.abs(random_rows(1, 30)).max()
    check(operator, np.asarray(sizes[:, None] * pattern, np.float32))


@pytest.mark.parametrize("zero_point", [SIGNED, AFTER_GELU])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_nan_stays_nan(activation: int, zero_point: int) -> None:
    x = random_rows(4, 30)
    x[1, 3], x[2, 17] = np.nan, -np.nan  # x86 computes NaN with a sign, as in inf - inf
    operator = Int8Linear(layers=[random_layer(30, 65, activation)], zero_point=zero_point)
    [output] = run(load(operator.model()), x)
    assert np.isnan(output).all(axis=1).tolist() == [False, True, True, False]


@pytest.mark.parametrize("zero_point", [SIGNED, AFTER_GELU])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
def test_a_bad_row_changes_no_other_row(bad: float, zero_point: int) -> None:
    operator = Int8Linear(
        layers=[random_layer(30, 65, activation) for activation in (NO_ACTIVATION, GELU, SILU)],
        zero_point=zero_point,
    )
    session = load(operator.model())
    x = random_rows(14, 30)
    before = run(session, x)
    for row in (0, 7, 13):
        changed = x.copy()
        changed[row, 3] = bad
        for old, new in zip(before, run(session, changed), strict=True):
            others = np.arange(14) != row
            assert old[others].tobytes() == new[others].tobytes()


@pytest.mark.parametrize("zero_point", [SIGNED, AFTER_GELU])
@pytest.mark.parametrize("inputs", [17, 64, 129])
def test_a_row_has_the_same_bits_in_each_batch(inputs: int, zero_point: int) -> None:
    layers = [
        random_layer(inputs, width, activation, floats=2)
        for width, activation in ((64, GELU), (70, GELU_TANH), (1, SILU))
    ]
    operator = Int8Linear(
        layers=layers, zero_point=zero_point, channels=np.array([0, 1]), transposed=True
    )
    x = random_rows(max(BATCHES), inputs)
    one_thread, two_threads = (load(operator.model(), threads) for threads in (1, 2))
    alone = [run(one_thread, x[row : row + 1]) for row in range(len(x))]
    expected = [np.concatenate(rows) for rows in zip(*alone, strict=True)]
    for rows in BATCHES:
        for session in (one_thread, two_threads):
            for output, whole in zip(run(session, x[-rows:]), expected, strict=True):
                assert output.tobytes() == whole[-rows:].tobytes()


def small_operator() -> Int8Linear:
    return Int8Linear(layers=[random_layer(8, 6, floats=2)], channels=np.array([0, 1]))


def small(*shape: int) -> Floats:
    return np.ones(shape, np.float32)


def indices(*channels: int) -> Indices:
    return np.array(channels, np.int64)


WITHOUT_FLOATS: dict[int, Array | Fed | None] = {8: None}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({5: Fed(TensorProto.INT8, 2)}, "input 5 must be a constant"),
        ({3: Fed(TensorProto.INT64, 1)}, "input 3 must be a constant"),
        ({5: np.ones(8, np.int8)}, "input 5 must have element type 3 and rank 2"),
        ({6: small()}, "input 6 must have element type 1 and rank 1"),
        ({7: small(1, 6)}, "input 7 must have element type 1 and rank 1"),
        ({8: small(12)}, "input 8 must have element type 1 and rank 2"),
        ({1: small(8, 1)}, "input 1 must have element type 1 and rank 1"),
        ({3: np.zeros((1, 2), np.int64)}, "input 3 must have element type 7 and rank 1"),
        ({6: small(5)}, "weight_scales and bias must have one entry per output"),
        ({7: small(7)}, "weight_scales and bias must have one entry per output"),
        ({1: small(7)}, "factors must have one entry per input"),
        ({3: None}, "float_weight must have a row per output and a column per channel"),
        ({8: small(5, 2)}, "float_weight must have a row per output"),
        ({8: small(6, 3)}, "float_weight must have a row per output"),
        ({3: indices(0, 8)}, "channels must be columns of x"),
        ({3: indices(-1, 0)}, "channels must be columns of x"),
        ({2: Fed()}, "channels must be missing beside floats"),
        ({5: np.ones((0, 6), np.int8)} | WITHOUT_FLOATS, "1 to 65536 inputs"),
        ({5: np.ones((65537, 6), np.int8)} | WITHOUT_FLOATS, "1 to 65536 inputs"),
        (
            {5: np.ones((8, 0), np.int8), 6: small(0), 7: None} | WITHOUT_FLOATS,
            "a weight must have outputs",
        ),
        # onnxruntime's own checks
        ({0: Fed(TensorProto.DOUBLE)}, "INVALID_GRAPH"),
        ({5: np.ones((8, 6), np.uint8)}, "INVALID_GRAPH"),
        ({8: np.ones((6, 2), np.float16)}, "INVALID_GRAPH"),
        ({0: None} | WITHOUT_FLOATS, "INVALID_GRAPH|FAIL"),
        ({5: None} | WITHOUT_FLOATS, "INVALID_GRAPH|FAIL"),
        ({6: None} | WITHOUT_FLOATS, "INVALID_GRAPH|FAIL"),
    ],
)
def test_refused_constants(changes: dict[int, Array | Fed | None], message: str) -> None:
    inputs = small_operator().inputs()
    for index, change in changes.items():
        inputs[index] = change
    with pytest.raises(Exception, match=message):
        load(operator_model("Int8Linear", inputs, **small_operator().attributes()))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"zero_point": 127}, "zero_point must be 128 or 16"),
        ({"zero_point": 128.0}, "type don't match"),
        ({"zero_point": None}, "No attribute with name:'zero_point'"),
        ({"transposed": None}, "No attribute with name:'transposed'"),
        ({"activations": None}, "No attribute with this name"),
        ({"activations": [0, 0]}, "activations must have one entry per output"),
        ({"activations": [4]}, "activations must be 0 to 3"),
        ({"activations": [2**32]}, "activations must be 0 to 3"),
    ],
)
def test_refused_attributes(changes: dict[str, Any], message: str) -> None:
    inputs = small_operator().inputs()
    inputs[8] = None
    attributes = small_operator().attributes() | changes
    kept = {name: value for name, value in attributes.items() if value is not None}
    with pytest.raises(Exception, match=message):
        load(operator_model("Int8Linear", inputs, **kept))


def test_refused_outputs() -> None:
    two = Int8Linear(layers=[random_layer(8, 6), random_layer(8, 6)])
    attributes = two.attributes()
    one = small_operator()
    with pytest.raises(Exception, match="each output needs weight and weight_scales"):
        load(operator_model("Int8Linear", one.inputs()[:8], 2, **attributes))
    with pytest.raises(Exception, match="residual needs a single output"):
        load(Int8Linear(layers=two.layers, has_residual=True).model())
    with pytest.raises(Exception, match="all weights must have the same inputs"):
        load(Int8Linear(layers=[random_layer(8, 6), random_layer(9, 6)]).model())
    with pytest.raises(Exception, match=r"INVALID_GRAPH|FAIL"):
        load(Int8Linear(layers=[random_layer(8, 6)] * 4).model())


def test_unused_weights_change_nothing() -> None:
    two = Int8Linear(layers=[random_layer(8, 6), random_layer(8, 6, SILU)])
    one = Int8Linear(layers=two.layers[:1])
    session = load(operator_model("Int8Linear", two.inputs(), **one.attributes()))
    check(one, random_rows(5, 8), session=session)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(5, 7), (5, 2), (5, 6)], "x must have a column per input of the weights"),
        ([(5, 8), (4, 2), (5, 6)], "floats must have the rows of x"),
        ([(0, 8), (1, 2), (0, 6)], "floats must have the rows of x"),
        ([(5, 8), (5, 3), (5, 6)], "floats must have .* a column per channel"),
        ([(5, 8), (5, 2), (1, 6)], "residual must have the shape of the output"),
        ([(5, 8), (5, 2), (6, 5)], "residual must have the shape of the output"),
    ],
)
def test_refused_shapes_at_run_time(shapes: Sequence[tuple[int, ...]], message: str) -> None:
    operator = Int8Linear(layers=[random_layer(8, 6, floats=2)], has_floats=True, has_residual=True)
    session = load(operator.model())
    with pytest.raises(Exception, match=message):
        run(session, *(small(*shape) for shape in shapes))


@pytest.mark.parametrize("index", [0, 2, 4])
def test_refused_ranks_at_run_time(index: int) -> None:
    operator = Int8Linear(layers=[random_layer(8, 6, floats=2)], has_floats=True, has_residual=True)
    inputs = operator.inputs()
    inputs[index] = Fed(rank=None)
    session = load(operator_model("Int8Linear", inputs, **operator.attributes()))
    fed = {0: small(5, 8), 2: small(5, 2), 4: small(5, 6)}
    run(session, *fed.values())
    for shape in ((), (1,), (1, 1, 1)):
        fed[index] = small(*shape)
        with pytest.raises(Exception, match=f"input {index} must have element type 1 and rank 2"):
            run(session, *fed.values())
