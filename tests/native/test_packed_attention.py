"""The operator PackedAttention in onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from tests.native.oracle import (
    TOLERANCE,
    Array,
    Fed,
    Floats,
    Indices,
    attention,
    attention_model,
    load,
    operator_model,
    run,
)

HEAD_WIDTHS = (16, 32, 48, 64, 80)


def random_rows(rows: int, columns: int, seed: int = 0) -> Floats:
    numbers = np.random.default_rng((rows, columns, seed))
    return numbers.standard_normal((rows, columns), np.float32)


def texts(*lengths: int) -> Indices:
    """Return the text of each token for texts of these lengths."""
    return np.repeat(np.arange(len(lengths)), lengths)


def check(
    heads: int, width: int, query_texts: Indices, key_texts: Indices, *, largest: float = 1
) -> None:
    columns = heads * width
    queries = np.float32(largest) * random_rows(len(query_texts), columns, 1)
    keys, values = (random_rows(len(key_texts), columns, seed) for seed in (2, 3))
    fed = (queries, keys, values, query_texts, key_texts)
    [output] = run(load(attention_model(heads)), *fed)
    assert output.shape == queries.shape
    assert output.dtype == np.float32
    # an error of a score is an error of the exponent of its weight
    score = float(np.abs(queries).max() * np.abs(keys).max()) if keys.size and queries.size else 0
    tolerance = TOLERANCE * max(1, score) * np.abs(values).max(initial=0)
    assert (np.abs(output - attention(*fed, heads)) <= tolerance).all()


@pytest.mark.parametrize("width", HEAD_WIDTHS)
def test_texts_of_each_length(width: int) -> None:
    tokens = texts(*range(1, 71), 256, 257, 500)
    check(2, width, tokens, tokens)


@pytest.mark.parametrize("heads", [1, 2, 3, 12])
def test_heads(heads: int) -> None:
    tokens = texts(5, 33, 1)
    for width in HEAD_WIDTHS:
        check(heads, width, tokens, tokens)


def test_queries_of_missing_texts_have_zeros() -> None:
    queries = np.array([9, 9, 0, -1, 2, 2, 5, 1, 2**62])
    keys = texts(3, 20, 7)
    check(2, 32, queries, keys)
    rows = random_rows(len(queries), 64)
    tokens = random_rows(len(keys), 64)
    [output] = run(load(attention_model(2)), rows, tokens, tokens, queries, keys)
    assert np.array_equal(output.any(axis=1), np.isin(queries, keys))


SOME = np.random.default_rng(0).integers(0, 3, 30)


@pytest.mark.parametrize(
    ("queries", "keys"),
    [
        *((np.repeat(np.arange(3), count), texts(4, 40, 17)) for count in (1, 2, 7, 8, 14)),
        (np.array([1, 1]), texts(3, 20, 7)),
        (SOME, texts(3, 40, 17)),
        (2**61 * SOME - 2**62, 2**61 * texts(3, 40, 17) - 2**62),
        (texts(), texts(3, 4)),
        (texts(3, 4), texts()),
        (texts(), texts()),
    ],
)
def test_some_tokens_are_queries(queries: Indices, keys: Indices) -> None:
    # in any order, for texts of any numbers
    check(2, 16, queries, keys)


@pytest.mark.parametrize("largest", [1e-30, 1e2, 1e8])
def test_small_and_large_scores(largest: float) -> None:
    tokens = texts(1, 7, 32, 65)
    check(2, 32, tokens, tokens, largest=largest)


@pytest.mark.parametrize("score", [1e3, 3e37, -1e3, -3e37])
def test_scores_do_not_overflow(score: float) -> None:
    # One token has all the weight, or no weight and the other 32 tokens have equal weights.
    keys, values = np.zeros((33, 16), np.float32), random_rows(33, 16)
    queries = np.zeros((2, 16), np.float32)
    queries[:, 0], keys[5, 0] = 4, score
    one = np.zeros(2, np.int64)
    [output] = run(load(attention_model(1)), queries, keys, values, one, np.repeat(one[:1], 33))
    others = np.delete(values, 5, axis=0).astype(np.float64).mean(axis=0)
    expected = values[5] if score > 0 else others
    assert np.abs(output - expected).max() <= TOLERANCE * np.abs(values).max()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_bad_row_changes_no_other_text(which: int, bad: float) -> None:
    tokens = texts(7, 9, 40)
    rows = [random_rows(len(tokens), 64, seed) for seed in range(3)]
    session = load(attention_model(2))
    [before] = run(session, *rows, tokens, tokens)
    rows[which][9, 3] = bad
    [after] = run(session, *rows, tokens, tokens)
    # a bad query changes only its own output
    others = np.arange(len(tokens)) != 9 if which == 0 else tokens != 1
    assert before[others].tobytes() == after[others].tobytes()
    if np.isnan(bad):
        changed = ~others
        assert np.isnan(after[changed]).any(axis=1).all()


@pytest.mark.parametrize("width", [16, 48, 64])
def test_a_text_has_the_same_bits_in_each_batch(width: int) -> None:
    lengths = (3, 64, 1, 31, 32, 33, 6, 7, 100)
    tokens = texts(*lengths)
    rows = [random_rows(len(tokens), 2 * width, seed) for seed in range(3)]
    sessions = [load(attention_model(2), threads) for threads in (1, 2)]
    [whole] = run(sessions[0], *rows, tokens, tokens)
    [again] = run(sessions[1], *rows, tokens, tokens)
    assert whole.tobytes() == again.tobytes()
    for text in range(len(lengths)):
        own = tokens == text
        queries, keys, values = (one[own] for one in rows)
        [alone] = run(sessions[0], queries, keys, values, tokens[own], tokens[own])
        assert alone.tobytes() == whole[own].tobytes()
        last = tokens[own][-1:]
        [one] = run(sessions[1], queries[-1:], keys, values, last, tokens[own])
        assert one.tobytes() == alone[-1:].tobytes()


def inputs() -> list[Fed | None]:
    text = Fed(TensorProto.INT64, 1)
    return [Fed(), Fed(), Fed(), text, text]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"heads": 0}, "heads must be from 1 to 4096"),
        ({"heads": 4097}, "heads must be from 1 to 4096"),
        ({"heads": -(2**63)}, "heads must be from 1 to 4096"),
        ({}, "No attribute with name:'heads'"),
        ({"heads": 2.0}, "type don't match"),
        ({"heads": [2]}, "type don't match"),
    ],
)
def test_refused_attributes(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        load(operator_model("PackedAttention", inputs(), **attributes))


@pytest.mark.parametrize("index", range(5))
def test_refused_inputs(index: int) -> None:
    for change in (None, Fed(TensorProto.INT32)):
        changed = [*inputs()[:index], change, *inputs()[index + 1 :]]
        with pytest.raises(Exception, match=r"INVALID_GRAPH|FAIL"):
            load(operator_model("PackedAttention", changed, heads=2))


@pytest.mark.parametrize("key_texts", [[1, 0], [0, 0, 2, 1, 1, 3], [-1, -2]])
@pytest.mark.parametrize("query_texts", [[], [7, 7]])
def test_refused_order_of_texts(key_texts: list[int], query_texts: list[int]) -> None:
    session = load(attention_model(1))
    tokens = random_rows(len(key_texts), 16)
    queries = random_rows(len(query_texts), 16)
    indices = np.array(query_texts, np.int64), np.array(key_texts, np.int64)
    with pytest.raises(Exception, match="the texts of the keys must ascend"):
        run(session, queries, tokens, tokens, *indices)


COLUMNS_PER_HEAD = "queries must have a multiple of 16 columns per head"
EQUAL_SHAPES = "keys and values must have the columns of the queries and equal shapes"
TEXT_OF_EACH_ROW = "each row must have a text"


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(3, 0), (4, 0), (4, 0), (3,), (4,)], COLUMNS_PER_HEAD),
        ([(3, 16), (4, 16), (4, 16), (3,), (4,)], COLUMNS_PER_HEAD),
        ([(3, 48), (4, 48), (4, 48), (3,), (4,)], COLUMNS_PER_HEAD),
        ([(3, 32), (4, 31), (4, 32), (3,), (4,)], EQUAL_SHAPES),
        ([(3, 32), (4, 32), (4, 31), (3,), (4,)], EQUAL_SHAPES),
        ([(3, 32), (4, 32), (3, 32), (3,), (4,)], EQUAL_SHAPES),
        ([(3, 32), (4, 32), (4, 32), (2,), (4,)], TEXT_OF_EACH_ROW),
        ([(3, 32), (4, 32), (4, 32), (3,), (3,)], TEXT_OF_EACH_ROW),
    ],
)
def test_refused_shapes(shapes: Sequence[tuple[int, ...]], message: str) -> None:
    session = load(attention_model(2))
    rows = [np.ones(shape, np.float32) for shape in shapes[:3]]
    with pytest.raises(Exception, match=message):
        run(session, *rows, *(np.zeros(shape, np.int64) for shape in shapes[3:]))


@pytest.mark.parametrize("index", range(5))
def test_refused_ranks(index: int) -> None:
    inputs = [Fed(rank=None)] * 3 + [Fed(TensorProto.INT64, None)] * 2
    session = load(operator_model("PackedAttention", inputs, heads=1))
    fed: list[Array] = [np.ones((1, 16), np.float32)] * 3
    fed += [np.zeros(1, np.int64)] * 2
    run(session, *fed)
    for shape in ((), (1, 1, 16)):
        fed[index] = np.ones(shape, fed[index].dtype)
        with pytest.raises(Exception, match=f"input {index} must have element type"):
            run(session, *fed)


def test_refused_lack_of_memory() -> None:
    # each run of queries needs a copy of the keys of its text, more than the address space in all
    rows = np.zeros((2_000_000, 16), np.float32)
    session = load(attention_model(1))
    queries, keys = np.arange(len(rows)) % 2, np.zeros(len(rows), np.int64)
    with pytest.raises(Exception, match=r"(?i)alloc|memory"):
        run(session, rows, rows, rows, queries, keys)
