"""Writer of Parquet, with added columns for the results."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import Block, Rows
from fillmask.cli.formats.output import ERROR, Output, Write
from fillmask.errors import quote

_GROUP_ROWS, _GROUP_BYTES = 2**14, 2**26
_TYPES = {float: pa.float64(), np.float32: pa.float32(), int: pa.int32(), str: pa.string()}


def arrow_type(kind: Any) -> pa.DataType:
    """Return the Arrow type of a type in a `Layout`, or of a type such as `tuple[int, ...]`."""
    if isinstance(kind, dict):
        return pa.struct([(name, arrow_type(one)) for name, one in kind.items()])
    if isinstance(kind, list):
        return pa.list_(arrow_type(kind[0]))
    if kind in _TYPES:
        return _TYPES[kind]
    [inner] = {one for one in get_args(kind) if one not in {type(None), Ellipsis}}
    return arrow_type(inner) if type(None) in get_args(kind) else pa.list_(arrow_type(inner))


class ParquetRowWriter:
    """Writer of a Parquet file.

    Rows that may have different fields are first all read, to find the columns.

    Raises:
        CommandError: the rows have a field whose values do not fit in one column.
    """

    def __init__(self, rows: Rows, output: Output) -> None:
        self._name = rows.name
        self._layout = output.layout
        types = {**output.layout.types, **({ERROR: str} if output.report_errors else {})}
        self._added = pa.schema([(name, arrow_type(kind)) for name, kind in types.items()])
        names = output.names(rows, output.layout.types)
        added = [field.with_name(names[field.name]) for field in self._added]
        self._input = _schema_of(rows)
        self._schema = pa.schema([*self._input, *added], metadata=self._input.metadata)
        with _as_command_error(self._name), pq.ParquetWriter(pa.BufferOutputStream(), self._schema):
            pass  # check the schema now, because writing starts after the last answer

    @contextmanager
    def write_to(self, stream: BinaryIO) -> Iterator[Write]:
        with pq.ParquetWriter(stream, self._schema, compression="zstd") as writer:
            group = self._schema.empty_table()

            def write(block: Block, answers: Sequence[bytes]) -> None:
                nonlocal group
                with _as_command_error(self._name):
                    batch = self._batch(block, answers)
                    group = pa.concat_tables([group, pa.Table.from_batches([batch])])
                    if group.num_rows >= _GROUP_ROWS or group.nbytes >= _GROUP_BYTES:
                        # makes the file independent of the lengths of the blocks
                        writer.write_table(group.combine_chunks())
                        group = self._schema.empty_table()

            yield write
            if group.num_rows:
                writer.write_table(group.combine_chunks())

    def _batch(self, block: Block, answers: Sequence[bytes]) -> pa.RecordBatch:
        rows: Any = block.items
        if not isinstance(rows, pa.RecordBatch):
            rows = pa.RecordBatch.from_pylist([row.fields for row in block.rows()], self._input)
        results = [self._layout.row(answer) for answer in answers]
        added = pa.RecordBatch.from_pylist(results, self._added).columns
        return pa.RecordBatch.from_arrays([*rows.columns, *added], schema=self._schema)


def _schema_of(rows: Rows) -> pa.Schema:
    if rows.schema is not None:
        return rows.schema
    if rows.columns is not None:
        return pa.schema([(column, pa.string()) for column in rows.columns])
    schema = pa.schema([])
    for block in rows.blocks():
        fields = [row.fields for row in block.rows()]
        for name in dict.fromkeys(name for row in fields for name in row):
            try:
                own = pa.array([row.get(name) for row in fields])
                more = pa.schema([(name, own.type)])
                schema = pa.unify_schemas([schema, more], promote_options="permissive")
            except (pa.ArrowException, OverflowError) as error:
                raise CommandError(
                    f"{rows.name}: the values of field {quote(name)}, up to row "
                    f"{block.first + len(block)}, have types that do not fit in one Parquet "
                    "column; write JSONL instead."
                ) from error
    return schema


@contextmanager
def _as_command_error(name: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OverflowError) as error:
        raise CommandError(
            f"pyarrow cannot write {name} as Parquet ({error}); write JSONL instead."
        ) from error
