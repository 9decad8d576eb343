"""Parquet, read a part of a row group at a time. Needs pyarrow."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from service.command.arrow_values import rows_of
from service.command.errors import CommandError
from service.command.rows import BLOCK_ROWS, Block, Fields, Rows, Unreadable
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
