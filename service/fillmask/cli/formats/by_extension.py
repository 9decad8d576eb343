"""Readers and writers of files, by file extension."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from fillmask.cli.errors import CommandError, reason
from fillmask.cli.formats.base import Rows, Source, standard_input
from fillmask.cli.formats.csv import CsvRows, CsvRowWriter
from fillmask.cli.formats.json import JsonArrayRows
from fillmask.cli.formats.lines import JsonRows, JsonRowWriter, TextRows
from fillmask.cli.formats.output import Output, RowWriter
from fillmask.errors import quote
from fillmask.tables.delimited import DEFAULT, Dialect
from fillmask.tables.streams import COMPRESSIONS, GZIP, open_text, suffix_of


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files. A CommandError says that it cannot represent the rows to write."""

    extensions: tuple[str, ...]  # in lower case
    read: Callable[[Source], Rows]
    write: Callable[[Rows, Output], RowWriter] | None = None  # None if the command only reads it
    is_text: bool = True  # with any compression and encoding
    dialect: bool = False  # with delimiters


def _read_parquet(source: Source) -> Rows:
    from fillmask.cli.formats.parquet_rows import ParquetRows  # noqa: PLC0415 - pyarrow is an extra

    return ParquetRows(source)


def _write_parquet(rows: Rows, output: Output) -> RowWriter:
    from fillmask.cli.formats.parquet_writer import ParquetRowWriter  # noqa: PLC0415 - pyarrow is an extra

    return ParquetRowWriter(rows, output)


PARQUET = Format((".parquet",), _read_parquet, _write_parquet, is_text=False)
FORMATS = (
    Format((".jsonl", ".ndjson"), JsonRows, JsonRowWriter),
    Format((".csv",), CsvRows, CsvRowWriter, dialect=True),
    Format((".tsv",), CsvRows, partial(CsvRowWriter, tabs=True), dialect=True),
    Format((".json",), JsonArrayRows),
    Format((".txt",), TextRows),
    PARQUET,
)
READ = tuple(ending for one in FORMATS for ending in one.extensions)
WRITTEN = tuple(ending for one in FORMATS if one.write for ending in one.extensions)
COMPRESSED = tuple(ending for one in FORMATS if one.is_text for ending in one.extensions)


def open_rows(path: Path | None, field: str, dialect: Dialect = DEFAULT) -> Rows:
    """Return a reader for the rows of a file, or of a folder or a pattern of Parquet files.

    None means JSONL on standard input.

    Raises:
        CommandError: the extension is unknown, pyarrow is missing, the content does not match the
            extension, or the format lacks an option of the dialect.
    """
    if path is None:
        return JsonRows(standard_input(field))
    if not path.is_dir():
        _format_to_read(path)
    files = _find_files(path)
    one = _format_to_read(files[0])
    for name, value in asdict(dialect).items():
        if value is not None and not (one.dialect or (name == "encoding" and one.is_text)):
            raise CommandError(f"--{name} has no meaning for {path.name}; remove it.")
    name = path.name if len(files) > 1 else files[0].name
    with _require_pyarrow(path):
        opened = partial(open_text, files[0], dialect.encoding)
        return one.read(Source(name, opened, field, files, dialect))


def _find_files(path: Path) -> list[Path]:
    """Return the files of an input, which is a file, a folder, or a pattern such as `a/*.parquet`.

    Raises:
        CommandError: there is no file, or a file is unreadable or of another format.
    """
    files = [path]
    if path.is_dir():
        # those who write folders hide files with a dot or an underscore
        files = sorted(one for one in path.iterdir() if one.name[0] not in "._")
    elif not path.exists() and any(mark in path.name for mark in "*?["):
        files = sorted(path.parent.glob(path.name))
    for file in files:
        if len(files) > 1 and _format_to_read(file) is not PARQUET:
            raise CommandError(
                f"{path} has several files, of which {file.name} is not Parquet; set --input to "
                "one file, or to a pattern such as '*.parquet'."
            )
        if file.exists() and not file.is_file():
            raise CommandError(f"{file} is not a file; set --input to a file.")
        try:
            file.open("rb").close()
        except OSError as error:
            raise CommandError(
                f"The command cannot read {file} ({reason(error)}); give a readable file."
            ) from error
    if not files:
        raise CommandError(f"{path} has no files; set --input to a file, a folder or a pattern.")
    return files


def make_writer(path: Path, rows: Rows, output: Output) -> RowWriter:
    """Return a writer for rows and their results, in the format of a path.

    Raises:
        CommandError: the extension is unknown, pyarrow is missing, or the format cannot
            represent the rows.
    """
    write = format_to_write(path).write
    assert write is not None  # noqa: S101 - of a format in WRITTEN
    with _require_pyarrow(path):
        return write(rows, output)


def _format_to_read(path: Path) -> Format:
    extension = suffix_of(path)
    allowed = COMPRESSED if path.suffix.lower() in COMPRESSIONS else READ
    if extension not in allowed:
        raise CommandError(
            f"The command cannot read {quote(path.name)}; the name must end in {_listed(READ)}. "
            f"After {_listed(COMPRESSED)}, it may have {_listed(COMPRESSIONS)}."
        )
    return next(one for one in FORMATS if extension in one.extensions)


def format_to_write(path: Path) -> Format:
    """Return the format of an output.

    Raises:
        CommandError: the extension is not in WRITTEN.
    """
    compressed = is_compressed(path)
    extension = suffix_of(path) if compressed else path.suffix.lower()
    if extension not in WRITTEN or (compressed and extension not in COMPRESSED):
        raise CommandError(
            f"The command cannot write {quote(path.name)}; the name must end in "
            f"{_listed(WRITTEN)}. After the others than .parquet, it may have {GZIP}."
        )
    return next(one for one in FORMATS if extension in one.extensions)


def is_compressed(output: Path) -> bool:
    """Return whether an output is compressed, always with gzip."""
    return output.suffix.lower() == GZIP


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
            f"{path.name} needs pyarrow, which is not installed here; use fillmask with its extra "
            "parquet (docs/install.md), or a file of another format."
        ) from error
