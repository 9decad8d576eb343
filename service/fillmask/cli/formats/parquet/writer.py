"""Writer of Parquet, with added columns for the results."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.answers import parse_problem
from fillmask.cli.formats.base import (
    ERROR,
    Block,
    OutputOptions,
    Rows,
    Write,
)
from fillmask.cli.formats.durable_files import write_file
from fillmask.cli.formats.parquet.layout import LAYOUTS
from fillmask.cli.formats.parquet.rows import ParquetBlock
from fillmask.errors import quote

_GROUP_ROWS, _GROUP_BYTES = 2**14, 2**26


class ParquetRowWriter:
    """Writer of a Parquet file.

    Args:
        rows: the rows to write. If the rows may have different fields, the writer first reads all
            rows to find the columns.

    Raises:
        CommandError: the rows have a field whose values do not fit in one column.
    """

    def __init__(self, rows: Rows, options: OutputOptions) -> None:
        self._name = rows.name
        self._layout = LAYOUTS[options.task.name]
        self._added = self._layout.columns
        if options.report_errors:
            self._added = self._added.append(pa.field(ERROR, pa.string()))
        names = options.names(rows, self._layout.columns.names)
        added = [field.with_name(names[field.name]) for field in self._added]
        self._input = _schema_of(rows)
        self._schema = pa.schema([*self._input, *added], metadata=self._input.metadata)
        with _as_command_error(self._name), pq.ParquetWriter(pa.BufferOutputStream(), self._schema):
            pass  # check the schema now, because writing starts after the last answer

    @contextmanager
    def open(self, path: Path) -> Iterator[Write]:
        """See `RowWriter`."""
        with (
            write_file(path) as stream,
            pq.ParquetWriter(stream, self._schema, compression="zstd") as writer,
        ):
            group: list[pa.RecordBatch] = []

            def end_group() -> None:
                # combine_chunks makes the file independent of the lengths of the blocks
                writer.write_table(pa.Table.from_batches(group, self._schema).combine_chunks())
                group.clear()

            def write(block: Block, answers: Sequence[bytes]) -> None:
                with _as_command_error(self._name):
                    group.append(self._batch(block, answers))
                    rows = sum(batch.num_rows for batch in group)
                    if rows >= _GROUP_ROWS or sum(b.nbytes for b in group) >= _GROUP_BYTES:
                        end_group()

            yield write
            if group:
                end_group()

    def _batch(self, block: Block, answers: Sequence[bytes]) -> pa.RecordBatch:
        problems = [parse_problem(answer) for answer in answers]
        if isinstance(block, ParquetBlock):
            columns = block.columns.columns
        else:
            columns = pa.RecordBatch.from_pylist(block.known_fields(), self._input).columns
        results = [
            {ERROR: problem.message} if problem else self._layout.values(answer)
            for answer, problem in zip(answers, problems, strict=True)
        ]
        added = pa.RecordBatch.from_pylist(results, self._added).columns
        return pa.RecordBatch.from_arrays([*columns, *added], schema=self._schema)


def _schema_of(rows: Rows) -> pa.Schema:
    if rows.schema is not None:
        return rows.schema
    if rows.columns is not None:
        return pa.schema([(column, pa.string()) for column in rows.columns])
    schema = pa.schema([])
    for block in rows.blocks():
        fields = block.known_fields()
        names = dict.fromkeys(name for row in fields for name in row)
        for name in names:
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
