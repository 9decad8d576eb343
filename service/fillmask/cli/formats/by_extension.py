"""Readers and writers of files, by file extension."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fillmask.cli.errors import CommandError, reason
from fillmask.cli.formats.base import OutputOptions, Rows, RowWriter
from fillmask.cli.formats.compression import COMPRESSIONS, opener
from fillmask.cli.formats.csv import CSV, TSV
from fillmask.cli.formats.format import Format, Source
from fillmask.cli.formats.json import JSON
from fillmask.cli.formats.jsonl import JSONL
from fillmask.cli.formats.parquet import PARQUET
from fillmask.cli.formats.text import TEXT
from fillmask.errors import quote


def check_input(path: Path) -> None:
    """Reject an input path that is not a readable file with a supported extension.

    Raises:
        CommandError: the path has no supported extension, does not exist, is not a file, or is not
            readable.
    """
    _format_to_read(path)
    if path.exists() and not path.is_file():
        raise CommandError(f"{path} is not a file; set --input to a file.")
    try:
        path.open("rb").close()
    except OSError as error:
        raise CommandError(
            f"The command cannot read {path} ({reason(error)}); give a readable file."
        ) from error


FORMATS = (JSONL, CSV, TSV, JSON, TEXT, PARQUET)
READ = tuple(ending for one in FORMATS for ending in one.extensions)
WRITTEN = tuple(ending for one in FORMATS if one.write for ending in one.extensions)
COMPRESSED = tuple(ending for one in FORMATS if one.compressible for ending in one.extensions)


def open_rows(path: Path, field: str) -> Rows:
    """Return a reader for the rows of a file.

    Args:
        field: field name for texts that have no name in the file.

    Raises:
        CommandError: the extension is unknown, pyarrow is missing, or the content does not match
            the extension.
    """
    with _require_pyarrow(path):
        return _format_to_read(path).read(Source(path, opener(path), field))


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
    write = _format_to_write(path).write
    assert write is not None  # noqa: S101 - of a format in WRITTEN
    with _require_pyarrow(path):
        return write(rows, options)


def check_output_name(path: Path) -> None:
    """Reject the name of an output without the extension of a format to write.

    Raises:
        CommandError: the extension is not in WRITTEN.
    """
    _format_to_write(path)


def _format_to_read(path: Path) -> Format:
    name = Path(path.name)
    compressed = name.suffix.lower() in COMPRESSIONS
    extension = (name.with_suffix("") if compressed else name).suffix.lower()
    allowed = COMPRESSED if compressed else READ
    if extension not in allowed:
        raise CommandError(
            f"The command cannot read {quote(path.name)}; the name must end in {_listed(READ)}. "
            f"After {_listed(COMPRESSED)}, it may have {_listed(COMPRESSIONS)}."
        )
    return next(one for one in FORMATS if extension in one.extensions)


def _format_to_write(path: Path) -> Format:
    extension = path.suffix.lower()
    if extension not in WRITTEN:
        raise CommandError(
            f"The command cannot write {quote(path.name)}; the name must end in {_listed(WRITTEN)}."
        )
    return next(one for one in FORMATS if extension in one.extensions)


def _listed(endings: tuple[str, ...]) -> str:
    return f"{', '.join(endings[:-1])} or {endings[-1]}"


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
