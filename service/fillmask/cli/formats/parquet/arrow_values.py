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
    values: list[Any]
    if _has_temporal(column.type):
        values = [_value_of(scalar) for scalar in column]
    else:
        values = column.to_pylist()
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
    value: Any
    if not scalar.is_valid:
        value = None
    elif pa.types.is_duration(kind):
        value = _duration(scalar.value, kind.unit)
    elif pa.types.is_temporal(kind):
        value = scalar.cast(pa.string()).as_py()
    elif pa.types.is_dictionary(kind):
        value = _value_of(scalar.value)
    elif pa.types.is_struct(kind):
        value = {name: _value_of(field) for name, field in scalar.items()}
    elif pa.types.is_map(kind):
        value = [(_value_of(pair["key"]), _value_of(pair["value"])) for pair in scalar.values]
    elif kind.num_fields:
        value = [_value_of(element) for element in scalar.values]
    else:
        value = scalar.as_py()
    return value


def _duration(count: int, unit: str) -> str:
    """Format a duration in seconds according to ISO 8601, such as `PT1.5S`."""
    seconds, rest = divmod(abs(count), _PER_SECOND[unit])
    digits = len(str(_PER_SECOND[unit])) - 1
    fraction = f".{rest:0{digits}}".rstrip("0") if rest else ""
    return f"{'-' if count < 0 else ''}PT{seconds}{fraction}S"
