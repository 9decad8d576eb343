"""Readers and writers of files, by file extension."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from fillmask.cli.errors import CommandError, reason
from fillmask.cli.formats.base import OutputOptions, Rows, RowWriter
from fillmask.cli.formats.csv import CsvRows, CsvRowWriter
from fillmask.cli.formats.jsonl import JsonRows, JsonRowWriter, TextRows
from fillmask.cli.formats.lines import Stream
from fillmask.errors import quote


def check_input(path: Path) -> None:
    """Reject an input path that is not a readable file with a supported extension.

    Raises:
        CommandError: the path has no supported extension, does not exist, is not a file, or is not
            readable.
    """
    check_extension(path, READ)
    if path.exists() and not path.is_file():
        raise CommandError(f"{path} is not a file; set --input to a file.")
    try:
        path.open("rb").close()
    except OSError as error:
        raise CommandError(
            f"The command cannot read {path} ({reason(error)}); give a readable file."
        ) from error


_JSON_LINES = (".jsonl", ".ndjson")
READ = (*_JSON_LINES, ".csv", ".parquet", ".txt")
WRITTEN = (*_JSON_LINES, ".csv", ".parquet")


def open_rows(path: Path, field: str) -> Rows:
    """Return a reader for the rows of a file.

    Args:
        field: field name for the lines of plain text.

    Raises:
        CommandError: the extension is unknown, pyarrow is missing, or the content does not match
            the extension.
    """
    extension = check_extension(path, READ)

    def open_stream() -> AbstractContextManager[Stream]:
        return path.open("rb", buffering=0)

    if extension in _JSON_LINES:
        return JsonRows(path.name, open_stream)
    if extension == ".txt":
        return TextRows(path.name, open_stream, field)
    if extension == ".csv":
        return CsvRows(path)
    with _require_pyarrow(path):
        from fillmask.cli.formats.parquet import ParquetRows  # noqa: PLC0415 - an optional extra
    return ParquetRows(path)


def make_writer(path: Path, rows: Rows, options: OutputOptions) -> RowWriter:
    """Return a writer for rows and their results.

    Args:
        path: path of the output, whose extension sets the format.
        rows: the rows to write. If the rows may have different fields, the writers of CSV and
            Parquet first read all rows to find the columns.

    Raises:
        CommandError: the extension is unknown, pyarrow is missing, or the format cannot
            represent the rows.
    """
    extension = check_extension(path, WRITTEN)
    if extension in _JSON_LINES:
        return JsonRowWriter(rows, options)
    if extension == ".csv":
        return CsvRowWriter(rows, options)
    with _require_pyarrow(path):
        from fillmask.cli.formats.parquet import ParquetRowWriter  # noqa: PLC0415 - an optional extra
    return ParquetRowWriter(rows, options)


def check_extension(path: Path, allowed: tuple[str, ...]) -> str:
    """Return the extension of a file name, in lower case.

    Raises:
        CommandError: the extension is not among `allowed`.
    """
    extension = path.suffix.lower()
    if extension not in allowed:
        verb = "read" if allowed is READ else "write"
        raise CommandError(
            f"The command cannot {verb} {quote(path.name)}; the name must end in "
            f"{', '.join(allowed[:-1])} or {allowed[-1]}."
        )
    return extension


@contextmanager
def _require_pyarrow(path: Path) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyarrow":
            raise
        raise CommandError(
            f"{path.name} needs pyarrow, which is not installed; run pip install "
            "'.[parquet]' in a checkout, or pip install 'PATH/TO/WHEEL[parquet]'."
        ) from error
