"""Rows of Parquet.

Dates, times and durations become strings, because Python's own types support neither
nanoseconds nor years after 9999.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import BLOCK_ROWS, Fields, Row, Rows, Source
from fillmask.errors import quote

# what Arrow raises for values or types that it cannot convert
_UNREADABLE = (ValueError, NotImplementedError, TypeError)
# maximum size of a block in bytes, so that blocks with long cells have fewer rows
_BLOCK_BYTES = 2**20
# number of duration units per second
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class ParquetRows(Rows):
    """Rows of Parquet files of the same columns, one file after the other.

    The items of a block are a record batch.

    Raises:
        CommandError: a file is not a Parquet file, or has other columns, or two columns have the
            same name.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._count = 0
        for path in source.files:
            with _open(path, "is not a Parquet file") as file:
                self.schema = self.schema or file.schema_arrow
                if not file.schema_arrow.equals(self.schema):
                    raise CommandError(
                        f"{self.name}: {path.name} has other columns or types than "
                        f"{source.files[0].name}; make them equal, or run the command for each."
                    )
                self._count += file.metadata.num_rows
        self.columns: tuple[str, ...] = tuple(self.schema.names)
        for place, column in enumerate(self.columns):
            if column in self.columns[:place]:
                raise CommandError(f"{self.name} has two columns {quote(column)}; rename one.")
        self.row_parameters = "parameters" in self.columns

    def count(self) -> int:
        return self._count

    def batches(self, only: Sequence[str] | None = None, /) -> Iterator[pa.RecordBatch]:
        columns = None if only is None else [name for name in only if name in self.columns]
        for path in self.source.files:
            with _open(path, "is damaged") as file:
                for batch in file.iter_batches(BLOCK_ROWS, columns=columns, use_threads=False):
                    rows = max(1, len(batch) * _BLOCK_BYTES // max(1, batch.nbytes))
                    for place in range(0, len(batch), rows):
                        yield batch[place : place + rows]

    def parse(self, item: pa.RecordBatch, number: int) -> Row:
        """Read a single row, because another row of its block may be invalid."""
        known: Fields = {}
        problem = None
        for name in item.schema.names:
            try:
                [fields] = rows_of(item.select([name]))
            except UnicodeDecodeError:
                problem = "The row is not valid UTF-8; encode it as UTF-8."
            except _UNREADABLE as error:
                raise CommandError(
                    f"pyarrow cannot read the column {quote(name)} in row {number + 1} ({error}); "
                    "change the type of the column."
                ) from error
            else:
                known |= fields
        return Row(known, problem)

    def _read(self, items: pa.RecordBatch, first: int) -> list[Row]:
        try:
            return [Row(fields) for fields in rows_of(items)]
        except _UNREADABLE:
            each = range(len(items))
            return [self.parse(items[place : place + 1], first + place) for place in each]


@contextmanager
def _open(path: Path, problem: str) -> Iterator[pq.ParquetFile]:
    """Open a file, and convert Arrow's errors, but not the operating system's, to CommandError."""
    try:
        # With a buffer, pyarrow reads columns as needed. Without a buffer, pyarrow reads the whole
        # row group at once.
        with pq.ParquetFile(path, buffer_size=_BLOCK_BYTES) as file:
            yield file
    except pa.ArrowNotImplementedError as error:
        raise CommandError(
            f"pyarrow cannot read {path.name} ({error}); write it with other types of columns, or "
            "another compression."
        ) from error
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise CommandError(f"{path.name} {problem} ({error}); create the file again.") from error


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
