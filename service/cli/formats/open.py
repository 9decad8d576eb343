"""Formats of files, by their ending."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from service.cli.errors import CommandError, reason
from service.cli.formats.base import OutputOptions, Rows, RowWriter
from service.cli.formats.csv import CsvOutput, CsvRows
from service.cli.formats.jsonl import JsonOutput, JsonRows, TextRows
from service.cli.formats.lines import Stream
from service.errors import quote


def check_input(path: Path) -> None:
    """Refuse a file that cannot be read.

    Raises:
        CommandError: it is not there, no file, not readable, or of no format that is read.
    """
    check_ending(path, READ)
    if path.exists() and not path.is_file():
        raise CommandError(f"{path} is no file.")
    try:
        path.open("rb").close()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {reason(error)}.") from error


_JSON_LINES = (".jsonl", ".ndjson")
READ = (*_JSON_LINES, ".csv", ".parquet", ".txt")
WRITTEN = (*_JSON_LINES, ".csv", ".parquet")


def open_rows(path: Path, field: str) -> Rows:
    """The rows of a file.

    Args:
        path: the file.
        field: what the lines of plain text are called.

    Raises:
        CommandError: it is of no format that is read, or not what its ending says.
    """
    ending = check_ending(path, READ)

    def open_stream() -> AbstractContextManager[Stream]:
        return path.open("rb", buffering=0)

    if ending in _JSON_LINES:
        return JsonRows(path.name, open_stream)
    if ending == ".txt":
        return TextRows(path.name, open_stream, field)
    if ending == ".csv":
        return CsvRows(path)
    with _pyarrow_for(path):
        from service.cli.formats.parquet import ParquetRows  # noqa: PLC0415 - an optional extra
    return ParquetRows(path)


def make_output(path: Path, rows: Rows, given: OutputOptions) -> RowWriter:
    """What writes a file.

    Args:
        path: the file.
        rows: what is written; looked through where its columns have to be known beforehand.
        given: what the rows are given.

    Raises:
        CommandError: it is of no format that is written, or cannot hold these rows.
    """
    ending = check_ending(path, WRITTEN)
    if ending in _JSON_LINES:
        return JsonOutput(rows, given)
    if ending == ".csv":
        return CsvOutput(rows, given)
    with _pyarrow_for(path):
        from service.cli.formats.parquet import ParquetOutput  # noqa: PLC0415 - the same
    return ParquetOutput(rows, given)


def check_ending(path: Path, allowed: tuple[str, ...]) -> str:
    """The file's ending.

    Raises:
        CommandError: it is none of those.
    """
    ending = path.suffix.lower()
    if ending not in allowed:
        verb = "read" if allowed is READ else "written"
        raise CommandError(
            f"{quote(path.name)} is of no format that is {verb}; these end in "
            f"{', '.join(allowed[:-1])} or {allowed[-1]}."
        )
    return ending


@contextmanager
def _pyarrow_for(path: Path) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyarrow":
            raise
        raise CommandError(
            f"{path.name} needs pyarrow, which is left out of the install: "
            "pip install 'fillmask[parquet]'"
        ) from error
