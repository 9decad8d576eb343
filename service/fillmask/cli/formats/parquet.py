"""Reader and writer of Parquet, with added columns for the results."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.answers import parse_problem
from fillmask.cli.formats.arrow_values import rows_of
from fillmask.cli.formats.base import (
    BLOCK_ROWS,
    ERROR,
    Block,
    Fields,
    OutputOptions,
    Rows,
    UnreadableRow,
    Write,
    reject_name_clash,
)
from fillmask.cli.formats.durable_files import create, sync
from fillmask.cli.formats.parquet_types import RESULT_COLUMNS
from fillmask.errors import quote

# maximum size of a block in bytes, so that blocks with long cells have fewer rows
_BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class ParquetBlock(Block):
    """Block of rows, stored by column.

    Attributes:
        columns: the requested columns.
    """

    first: int
    columns: pa.RecordBatch

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    def slice(self, start: int, stop: int) -> "ParquetBlock":
        """See `Block`."""
        return ParquetBlock(self.first + start, self.columns.slice(start, stop - start))

    def fields(self) -> list[Fields | UnreadableRow]:
        """See `Block`. Dates, times and durations are strings.

        Raises:
            CommandError: a value has no counterpart in Python.
        """
        try:
            return list(rows_of(self.columns))
        except ValueError:
            each = range(len(self))
            return [_read_row(self.columns.slice(place, 1), self.first + place) for place in each]


class ParquetRows(Rows):
    """Rows of a Parquet file.

    Raises:
        CommandError: the file is not a Parquet file, or two columns have the same name.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._path = path
        with _reject_unreadable(f"{self.name} is not a Parquet file"), pq.ParquetFile(path) as file:
            self.schema: pa.Schema = file.schema_arrow
            self._group_rows = [
                file.metadata.row_group(group).num_rows
                for group in range(file.metadata.num_row_groups)
            ]
        self.columns: tuple[str, ...] = tuple(self.schema.names)
        for place, column in enumerate(self.columns):
            if column in self.columns[:place]:
                raise CommandError(f"{self.name} has two columns {quote(column)}; rename one.")
        self.row_parameters = "parameters" in self.columns

    def count(self) -> int:
        """See `Rows`."""
        return sum(self._group_rows)

    def blocks(
        self, start: int = 0, stop: int | None = None, only: Sequence[str] | None = None
    ) -> Iterator[ParquetBlock]:
        """See `Rows`."""
        stop = self.count() if stop is None else stop
        number, groups = 0, []
        first = None
        for group, rows in enumerate(self._group_rows):
            if max(number, start) < min(number + rows, stop):
                first = number if first is None else first
                groups.append(group)
            number += rows
        if first is None:
            return
        columns = None if only is None else [name for name in only if name in self.columns]
        # With a buffer, pyarrow reads columns as needed. Without a buffer, pyarrow reads the whole
        # row group at once.
        with pq.ParquetFile(self._path, buffer_size=_BLOCK_BYTES) as file:
            batches = file.iter_batches(BLOCK_ROWS, groups, columns, use_threads=False)
            for batch in self._checked(batches):
                from_, to = max(start - first, 0), min(stop - first, batch.num_rows)
                rows = max(1, batch.num_rows * _BLOCK_BYTES // max(1, batch.nbytes))
                for place in range(from_, to, rows):
                    part = batch.slice(place, min(rows, to - place))
                    yield ParquetBlock(first + place, part)
                first += batch.num_rows

    def _checked(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with _reject_unreadable(f"{self.name} is damaged"):
            yield from batches


@contextmanager
def _reject_unreadable(message: str) -> Iterator[None]:
    """Convert Arrow's errors to CommandError. Errors of the operating system pass unchanged."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise CommandError(f"{message} ({error}); create the file again.") from error


def _read_row(row: pa.RecordBatch, number: int) -> Fields | UnreadableRow:
    """Read a single row, because another row of its block may be invalid."""
    try:
        [fields] = rows_of(row)
    except UnicodeDecodeError:
        return UnreadableRow("The row is not valid UTF-8; encode it as UTF-8.")
    except ValueError as error:
        column = next(name for name in row.schema.names if not _is_readable(row.select([name])))
        raise CommandError(
            f"pyarrow cannot read the column {quote(column)} in row {number + 1} ({error}); change "
            "the type of the column."
        ) from error
    return fields


def _is_readable(rows: pa.RecordBatch) -> bool:
    try:
        list(rows_of(rows))
    except ValueError:
        return False
    return True


_GROUP_ROWS, _GROUP_BYTES = 2**14, 2**26


class ParquetRowWriter:
    """Writer of a Parquet file.

    Args:
        rows: the rows to write. If the rows may have different fields, the writer first reads all
            rows to find the columns.

    Raises:
        CommandError: the rows have a field with the name of an added column, or a field whose
            values do not fit in one column.
    """

    def __init__(self, rows: Rows, options: OutputOptions) -> None:
        self._name = rows.name
        reports_rows = rows.columns is None and options.report_errors
        self._task = options.task
        self._added = RESULT_COLUMNS[self._task.name]
        if options.report_errors:
            self._added = self._added.append(pa.field(ERROR, pa.string()))
        self.reserved = tuple(self._added.names) if reports_rows else ()
        self._input = _schema_of(rows, self.reserved)
        reject_name_clash(rows.name, self._input.names, self._added.names)
        self._schema = pa.schema([*self._input, *self._added], metadata=self._input.metadata)
        with _as_command_error(self._name), pq.ParquetWriter(pa.BufferOutputStream(), self._schema):
            pass  # check the schema now, because writing starts after the last answer

    @contextmanager
    def open(self, path: Path) -> Iterator[Write]:
        """See `RowWriter`."""
        with create(path) as stream:
            with pq.ParquetWriter(stream, self._schema, compression="zstd") as writer:
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
            sync(stream, path)

    def _batch(self, block: Block, answers: Sequence[bytes]) -> pa.RecordBatch:
        problems = [parse_problem(answer) for answer in answers]
        if isinstance(block, ParquetBlock):
            columns = block.columns.columns
        else:
            rows = [
                {} if isinstance(row, UnreadableRow) or (problem and not problem.readable) else row
                for row, problem in zip(block.fields(), problems, strict=True)
            ]
            columns = pa.RecordBatch.from_pylist(rows, self._input).columns
        results = [
            {ERROR: problem.message} if problem else self._task.parquet_values(answer)
            for answer, problem in zip(answers, problems, strict=True)
        ]
        added = pa.RecordBatch.from_pylist(results, self._added).columns
        return pa.RecordBatch.from_arrays([*columns, *added], schema=self._schema)


def _schema_of(rows: Rows, reserved: Sequence[str]) -> pa.Schema:
    """Return the schema of the rows. The function ignores rows with reserved field names."""
    if isinstance(rows, ParquetRows):
        return rows.schema
    if rows.columns is not None:
        return pa.schema([(column, pa.string()) for column in rows.columns])
    schema = pa.schema([])
    for block in rows.blocks():
        fields = [
            row
            for row in block.fields()
            if not isinstance(row, UnreadableRow) and row.keys().isdisjoint(reserved)
        ]
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
