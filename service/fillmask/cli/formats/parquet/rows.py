"""Reader of Parquet."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import BLOCK_ROWS, Block, Fields, Row, Rows, Source
from fillmask.cli.formats.parquet.arrow_values import rows_of
from fillmask.errors import quote

# what Arrow raises for values or types that it cannot convert
_UNREADABLE = (ValueError, NotImplementedError, TypeError)
# maximum size of a block in bytes, so that blocks with long cells have fewer rows
_BLOCK_BYTES = 2**20


class ParquetRows(Rows):
    """Rows of Parquet files of the same columns, one file after the other.

    The items of a block are a record batch.

    Raises:
        CommandError: a file is not a Parquet file, or has other columns, or two columns have the
            same name.
    """

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self._files: list[tuple[Path, list[int]]] = []  # with the rows of each row group
        for path in source.files:
            with (
                _reject_unreadable(path.name, "is not a Parquet file"),
                pq.ParquetFile(path) as file,
            ):
                self.schema = self.schema or file.schema_arrow
                if not file.schema_arrow.equals(self.schema):
                    raise CommandError(
                        f"{self.name}: {path.name} has other columns or types than "
                        f"{source.files[0].name}; make them equal, or run the command for each."
                    )
                groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
                self._files.append((path, [group.num_rows for group in groups]))
        self.columns: tuple[str, ...] = tuple(self.schema.names)
        for place, column in enumerate(self.columns):
            if column in self.columns[:place]:
                raise CommandError(f"{self.name} has two columns {quote(column)}; rename one.")
        self.row_parameters = "parameters" in self.columns

    def count(self) -> int:
        return sum(sum(groups) for _, groups in self._files)

    def batches(self) -> Iterator[pa.RecordBatch]:
        return (block.items for block in self.blocks())

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

    def blocks(
        self, start: int = 0, stop: int | None = None, only: Sequence[str] | None = None
    ) -> Iterator[Block]:
        stop = self.count() if stop is None else stop
        columns = None if only is None else [name for name in only if name in self.columns]
        number = 0
        for path, group_rows in self._files:
            groups: list[int] = []
            first = number
            for group, rows in enumerate(group_rows):
                if max(number, start) < min(number + rows, stop):
                    first = first if groups else number
                    groups.append(group)
                number += rows
            if groups:
                for place, batch in _read_groups(path, groups, columns):
                    from_, to = max(start - first - place, 0), stop - first - place
                    if part := batch[from_ : max(to, from_)]:
                        yield Block(first + place + from_, part, self._read)

    def _read(self, items: pa.RecordBatch, first: int) -> list[Row]:
        try:
            return [Row(fields) for fields in rows_of(items)]
        except _UNREADABLE:
            each = range(len(items))
            return [self.parse(items[place : place + 1], first + place) for place in each]


def _read_groups(
    path: Path, groups: list[int], columns: list[str] | None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Read row groups in batches, each with the index of its first row among them."""
    first = 0
    # With a buffer, pyarrow reads columns as needed. Without a buffer, pyarrow reads the whole
    # row group at once.
    with (
        _reject_unreadable(path.name, "is damaged"),
        pq.ParquetFile(path, buffer_size=_BLOCK_BYTES) as file,
    ):
        for batch in file.iter_batches(BLOCK_ROWS, groups, columns, use_threads=False):
            rows = max(1, len(batch) * _BLOCK_BYTES // max(1, batch.nbytes))
            for place in range(0, len(batch), rows):
                yield first + place, batch[place : place + rows]
            first += len(batch)


@contextmanager
def _reject_unreadable(name: str, problem: str) -> Iterator[None]:
    """Convert Arrow's errors to CommandError. Errors of the operating system pass unchanged."""
    try:
        yield
    except pa.ArrowNotImplementedError as error:
        raise CommandError(
            f"pyarrow cannot read {name} ({error}); write it with other types of columns, or "
            "another compression."
        ) from error
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise CommandError(f"{name} {problem} ({error}); create the file again.") from error
