"""Conversion of Arrow values to Python values.

Dates, times and durations become strings, because Python's own types support neither
nanoseconds nor years after 9999.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

# number of duration units per second
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def rows_of(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Convert the rows of a record batch to dictionaries.

    Raises:
        UnicodeDecodeError: a string is not valid UTF-8.
        ValueError: a struct has two fields with the same name.
    """
    names = batch.schema.names
    columns = [_values_of(column) for column in batch.columns]
    for place in range(batch.num_rows):
        yield {name: column[place] for name, column in zip(names, columns, strict=True)}


def _values_of(column: pa.Array) -> list[Any]:
    if pa.types.is_temporal(column.type) and not pa.types.is_duration(column.type):
        column = column.cast(pa.string())
    values: list[Any] = (
        [_value_of(scalar) for scalar in column]
        if _has_temporal(column.type)
        else column.to_pylist()
    )
    return values


def _has_temporal(kind: pa.DataType) -> bool:
    """Return whether a type is or contains a date, a time or a duration."""
    if pa.types.is_temporal(kind):
        return True
    if pa.types.is_dictionary(kind):
        return _has_temporal(kind.value_type)
    return any(_has_temporal(kind.field(place).type) for place in range(kind.num_fields))


def _value_of(scalar: pa.Scalar) -> Any:
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_temporal(kind):
        is_duration = pa.types.is_duration(kind)
        return _duration(scalar) if is_duration else scalar.cast(pa.string()).as_py()
    if pa.types.is_dictionary(kind):
        return _value_of(scalar.value)
    if pa.types.is_struct(kind):
        return {name: _value_of(field) for name, field in scalar.items()}
    if pa.types.is_map(kind):
        return [(_value_of(pair["key"]), _value_of(pair["value"])) for pair in scalar.values]
    return [_value_of(one) for one in scalar.values] if kind.num_fields else scalar.as_py()


def _duration(scalar: pa.Scalar) -> str:
    """Format a duration in seconds according to ISO 8601, such as `PT1.5S`."""
    per_second = _PER_SECOND[scalar.type.unit]
    seconds, rest = divmod(abs(scalar.value), per_second)
    digits = len(str(per_second)) - 1
    fraction = f".{rest:0{digits}}".rstrip("0") if rest else ""
    return f"{'-' if scalar.value < 0 else ''}PT{seconds}{fraction}S"
