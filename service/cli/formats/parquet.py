"""Parquet: rows in, rows out."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from service.cli.errors import CommandError
from service.cli.formats.answers import fills_of, problem_of
from service.cli.formats.arrow_values import rows_of
from service.cli.formats.base import (
    BLOCK_ROWS,
    ERROR,
    FILLS,
    Block,
    Fields,
    OutputOptions,
    Rows,
    Unreadable,
    Write,
    refuse_clash,
)
from service.cli.formats.durable_files import create, sync
from service.errors import quote

# rows whose cells are long come fewer at a time
_BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class ParquetBlock(Block):
    """Rows as columns.

    Attributes:
        columns: those that were asked for.
    """

    first: int
    columns: pa.RecordBatch

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    def part(self, start: int, stop: int) -> "ParquetBlock":
        """See `Block`."""
        return ParquetBlock(self.first + start, self.columns.slice(start, stop - start))

    def fields(self) -> list[Fields | Unreadable]:
        """See `Block`; dates, times and durations are texts.

        Raises:
            CommandError: a value is nothing outside of Parquet.
        """
        try:
            return list(rows_of(self.columns))
        except ValueError:
            each = range(len(self))
            return [_one(self.columns.slice(place, 1), self.first + place) for place in each]


class ParquetRows(Rows):
    """The rows of a Parquet file.

    Args:
        path: the file.

    Raises:
        CommandError: it is no Parquet file, or has two columns of one name.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._path = path
        with _refusing(f"{self.name} is not a Parquet file"), pq.ParquetFile(path) as file:
            self.schema: pa.Schema = file.schema_arrow
            self._group_rows = [
                file.metadata.row_group(group).num_rows
                for group in range(file.metadata.num_row_groups)
            ]
        self.columns: tuple[str, ...] = tuple(self.schema.names)
        for place, column in enumerate(self.columns):
            if column in self.columns[:place]:
                raise CommandError(f"{self.name} has two columns {quote(column)}.")
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
        # with a buffer, a column is read as it is needed, and not the whole group at once
        with pq.ParquetFile(self._path, buffer_size=_BLOCK_BYTES) as file:
            batches = file.iter_batches(BLOCK_ROWS, groups, columns, use_threads=False)
            for batch in self._sound(batches):
                from_, to = max(start - first, 0), min(stop - first, batch.num_rows)
                rows = max(1, batch.num_rows * _BLOCK_BYTES // max(1, batch.nbytes))
                for place in range(from_, to, rows):
                    part = batch.slice(place, min(rows, to - place))
                    yield ParquetBlock(first + place, part)
                first += batch.num_rows

    def _sound(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches of a file that may be damaged."""
        with _refusing(f"{self.name} is damaged"):
            yield from batches


@contextmanager
def _refusing(sentence: str) -> Iterator[None]:
    """Refuse a file that Arrow cannot read; what the system says of it goes through."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise CommandError(f"{sentence}: {error}") from error


def _one(row: pa.RecordBatch, number: int) -> Fields | Unreadable:
    """A row among which one has a value that Python does not take."""
    try:
        [fields] = rows_of(row)
    except UnicodeDecodeError:
        return Unreadable("The row is not valid UTF-8.")
    except ValueError as error:
        raise CommandError(
            f"Row {number + 1} has a value that is only Parquet's: {error}."
        ) from error
    return fields


# the same whatever is asked for; what a fill does not have is null
FILL_TYPE = pa.struct(
    [
        ("mask", pa.int32()),  # from 1
        ("score", pa.float64()),
        ("token", pa.int32()),
        ("token_str", pa.string()),
        ("sequence", pa.string()),
        ("log_prob", pa.float64()),
        ("target_score", pa.float64()),
        ("tokens", pa.list_(pa.int32())),
        ("token_strs", pa.list_(pa.string())),
        ("window", pa.list_(pa.int32())),
    ]
)
FILLS_TYPE = pa.list_(FILL_TYPE)

_GROUP_ROWS, _GROUP_BYTES = 2**14, 2**26


class ParquetOutput:
    """Writes Parquet.

    Args:
        rows: what is written; all are looked through where each has fields of its own.
        given: what the rows are given.

    Raises:
        CommandError: the rows have a field of the same name, or one that cannot be a column.
    """

    def __init__(self, rows: Rows, given: OutputOptions) -> None:
        self._name = rows.name
        self.reserved = given.fields if rows.columns is None and given.errors else ()
        self._input = _schema_of(rows, self.reserved)
        refuse_clash(rows.name, self._input.names, given.fields)
        self._errors = given.errors
        self._schema = self._input.append(pa.field(FILLS, FILLS_TYPE))
        if given.errors:
            self._schema = self._schema.append(pa.field(ERROR, pa.string()))
        with _as_command_error(self._name), pq.ParquetWriter(pa.BufferOutputStream(), self._schema):
            pass  # or it would be known hours later that a column has no place in Parquet

    @contextmanager
    def writing(self, path: Path) -> Iterator[Write]:
        """See `Output`."""
        with create(path) as stream:
            with pq.ParquetWriter(stream, self._schema, compression="zstd") as writer:
                group: list[pa.RecordBatch] = []

                def end_group() -> None:
                    # in one piece, so that the file does not hang on where blocks ended
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
        problems = [problem_of(answer) for answer in answers]
        if isinstance(block, ParquetBlock):
            columns = block.columns.columns
        else:
            rows = [
                {} if isinstance(row, Unreadable) or (problem and not problem.readable) else row
                for row, problem in zip(block.fields(), problems, strict=True)
            ]
            columns = pa.RecordBatch.from_pylist(rows, self._input).columns
        fills = [
            None if problem else _flat(answer)
            for answer, problem in zip(answers, problems, strict=True)
        ]
        columns = [*columns, pa.array(fills, FILLS_TYPE)]
        if self._errors:
            sentences = [problem and problem.sentence for problem in problems]
            columns.append(pa.array(sentences, pa.string()))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _flat(answer: bytes) -> list[dict[str, Any]]:
    """The fills of all masks in one list; each says which mask it is for."""
    masks = enumerate(fills_of(answer), 1)
    return [{"mask": mask, **fill} for mask, fills in masks for fill in fills]


def _schema_of(rows: Rows, reserved: Sequence[str]) -> pa.Schema:
    """The columns of the rows; rows with a field of a reserved name have none."""
    if isinstance(rows, ParquetRows):
        return rows.schema
    if rows.columns is not None:
        return pa.schema([(column, pa.string()) for column in rows.columns])
    schema = pa.schema([])
    for block in rows.blocks():
        fields = [
            row
            for row in block.fields()
            if not isinstance(row, Unreadable) and row.keys().isdisjoint(reserved)
        ]
        names = dict.fromkeys(name for row in fields for name in row)
        for name in names:
            try:
                own = pa.array([row.get(name) for row in fields])
                more = pa.schema([(name, own.type)])
                schema = pa.unify_schemas([schema, more], promote_options="permissive")
            except (pa.ArrowException, OverflowError) as error:
                raise CommandError(
                    f"{rows.name}: the field {quote(name)} has values of kinds that no column of "
                    f"Parquet holds together, up to row {block.first + len(block)}; JSONL takes "
                    "them."
                ) from error
    return schema


@contextmanager
def _as_command_error(name: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OverflowError) as error:
        raise CommandError(f"{name} has no place in Parquet: {error}") from error
