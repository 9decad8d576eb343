"""Reader of Parquet."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import BLOCK_ROWS, Block, Fields, Rows, UnreadableRow
from fillmask.cli.formats.parquet.arrow_values import rows_of
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
