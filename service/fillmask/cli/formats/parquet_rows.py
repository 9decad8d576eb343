"""Reader of Parquet."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import BLOCK_ROWS, Fields, Row, Rows, Source
from fillmask.cli.formats.parquet_values import rows_of
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
