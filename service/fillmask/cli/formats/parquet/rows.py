"""Reader of Parquet."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import BLOCK_ROWS, Block, Fields, Rows, Source, UnreadableRow
from fillmask.cli.formats.parquet.arrow_values import rows_of
from fillmask.errors import quote

# what Arrow raises for values or types that it cannot convert
_UNREADABLE = (ValueError, NotImplementedError, TypeError)
# maximum size of a block in bytes, so that blocks with long cells have fewer rows
_BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class ParquetBlock(Block):
    """Block of rows, stored by column.

    Attributes:
        columns: the requested columns.
    """

    columns: pa.RecordBatch

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    def slice(self, start: int, stop: int) -> "ParquetBlock":
        """See `Block`."""
        columns = self.columns.slice(start, stop - start)
        return replace(self, first=self.first + start, columns=columns)

    def fields(self) -> list[Fields | UnreadableRow]:
        """See `Block`. Dates, times and durations are strings.

        Raises:
            CommandError: a value has no counterpart in Python.
        """
        try:
            return list(rows_of(self.columns))
        except _UNREADABLE:
            each = range(len(self))
            return [_read_row(self.columns.slice(place, 1), self.first + place) for place in each]


class ParquetRows(Rows):
    """Rows of Parquet files of the same columns, one file after the other.

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
        """See `Rows`."""
        return sum(sum(groups) for _, groups in self._files)

    def blocks(
        self, start: int = 0, stop: int | None = None, only: Sequence[str] | None = None
    ) -> Iterator[ParquetBlock]:
        """See `Rows`."""
        stop = self.count() if stop is None else stop
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
                yield from self._read(path, groups, first, start, stop, only)

    def _read(
        self,
        path: Path,
        groups: list[int],
        first: int,
        start: int,
        stop: int,
        only: Sequence[str] | None,
    ) -> Iterator[ParquetBlock]:
        columns = None if only is None else [name for name in only if name in self.columns]
        # With a buffer, pyarrow reads columns as needed. Without a buffer, pyarrow reads the whole
        # row group at once.
        with (
            _reject_unreadable(path.name, "is damaged"),
            pq.ParquetFile(path, buffer_size=_BLOCK_BYTES) as file,
        ):
            for batch in file.iter_batches(BLOCK_ROWS, groups, columns, use_threads=False):
                from_, to = max(start - first, 0), min(stop - first, batch.num_rows)
                rows = max(1, batch.num_rows * _BLOCK_BYTES // max(1, batch.nbytes))
                for place in range(from_, to, rows):
                    part = batch.slice(place, min(rows, to - place))
                    yield ParquetBlock(first + place, part)
                first += batch.num_rows


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


def _read_row(row: pa.RecordBatch, number: int) -> Fields | UnreadableRow:
    """Read a single row, because another row of its block may be invalid."""
    try:
        [fields] = rows_of(row)
    except UnicodeDecodeError:
        names = [name for name in row.schema.names if _is_readable(row.select([name]))]
        [known] = rows_of(row.select(names))
        return UnreadableRow("The row is not valid UTF-8; encode it as UTF-8.", known)
    except _UNREADABLE as error:
        column = next(name for name in row.schema.names if not _is_readable(row.select([name])))
        raise CommandError(
            f"pyarrow cannot read the column {quote(column)} in row {number + 1} ({error}); change "
            "the type of the column."
        ) from error
    return fields


def _is_readable(rows: pa.RecordBatch) -> bool:
    try:
        list(rows_of(rows))
    except _UNREADABLE:
        return False
    return True
