"""Conversion of Arrow values to Python values. Times at any depth become strings."""

from typing import Any

import pyarrow as pa
import pytest

from fillmask.cli.formats.parquet_rows import rows_of

NS = pa.duration("ns")
NESTED = pa.list_(pa.struct([("a", pa.list_(pa.timestamp("ns"))), ("b", pa.int8())]))


@pytest.mark.parametrize(
    ("value", "kind", "plain"),
    [
        (1_500_000_001, NS, "PT1.500000001S"),
        (-1_500, pa.duration("ms"), "-PT1.5S"),
        (90_000, pa.duration("s"), "PT90000S"),
        (0, pa.duration("us"), "PT0S"),
        (2**63 - 1, pa.duration("s"), "PT9223372036854775807S"),
        ([1001, None], pa.list_(NS), ["PT0.000001001S", None]),
        ([1, 2], pa.list_(NS, 2), ["PT0.000000001S", "PT0.000000002S"]),
        ({"a": 1}, pa.struct([("a", NS)]), {"a": "PT0.000000001S"}),
        ([(1, 2)], pa.map_(NS, NS), [("PT0.000000001S", "PT0.000000002S")]),
        (1, pa.timestamp("ns"), "1970-01-01 00:00:00.000000001"),
        (1, pa.time64("ns"), "00:00:00.000000001"),
        (1, pa.date32(), "1970-01-02"),
        (3_000_000, pa.date32(), "10183-09-21"),
        ([{"a": [1], "b": 7}], NESTED, [{"a": ["1970-01-01 00:00:00.000000001"], "b": 7}]),
        (1.5, pa.float16(), 1.5),
        (b"\xff", pa.binary(), b"\xff"),
    ],
)
def test_a_value(value: object, kind: pa.DataType, plain: Any) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([value, None, value], kind)], ["x"])
    assert list(rows_of(batch)) == [{"x": plain}, {"x": None}, {"x": plain}]
    assert list(rows_of(batch.slice(2))) == [{"x": plain}]


def test_a_dictionary_of_durations() -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([1, None, 0]), pa.array([1, 2], NS))
    batch = pa.RecordBatch.from_arrays([values], ["x"])
    assert [row["x"] for row in rows_of(batch)] == ["PT0.000000002S", None, "PT0.000000001S"]
