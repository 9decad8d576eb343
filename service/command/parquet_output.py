"""Parquet: the rows' columns with their types, and one for the fills. Needs pyarrow."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from service.command.answers import fills_of, problem_of
from service.command.disk import create, sync
from service.command.errors import CommandError
from service.command.outputs import ERROR, FILLS, Given, Write, refuse_clash
from service.command.parquet_rows import ParquetBlock, ParquetRows
from service.command.rows import Block, Rows, Unreadable
from service.errors import quote

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

    def __init__(self, rows: Rows, given: Given) -> None:
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
