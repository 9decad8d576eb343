"""Reader and writer of JSONL."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, ClassVar

from pydantic_core import to_json

from fillmask.cli.formats.answers import parse_problem
from fillmask.cli.formats.base import (
    ERROR,
    Block,
    Fields,
    OutputOptions,
    Rows,
    UnreadableRow,
    Write,
    reject_name_clash,
)
from fillmask.cli.formats.durable_files import create, sync
from fillmask.cli.formats.format import Format
from fillmask.cli.formats.lines import LineBlock, LineRows
from fillmask.errors import FillMaskError
from fillmask.parameters.values import describe
from fillmask.strict_json import parse_json


@dataclass(frozen=True)
class JsonBlock(LineBlock):
    """Block of rows in JSON."""

    label: ClassVar[str] = "The line"  # name of a row's JSON, for error messages

    def json_objects(self) -> list[bytes]:
        """Return each line without surrounding white space.

        An overlong line becomes an empty object. The writer replaces other unreadable lines.
        """
        return [b"{}" if line is None else line.strip() for line in self.rows]

    def _read(self, line: bytes, number: int) -> Fields | UnreadableRow:
        if not line:
            return UnreadableRow(f"{self.label} is empty; it must be a JSON object.")
        try:
            value = parse_json(line, self.label, number + 1)
        except FillMaskError as error:
            return UnreadableRow(error.text)
        if isinstance(value, dict):
            return value
        return UnreadableRow(f"{self.label} must be a JSON object (got {describe(value)}).")


class JsonRows(LineRows):
    """Rows of a JSONL file."""

    columns = None
    row_parameters = True

    def _block(self, first: int, lines: Sequence[bytes | None]) -> Block:
        return JsonBlock(first, lines)


class JsonRowWriter:
    """Writer of a JSONL file.

    Raises:
        CommandError: the rows have a column with the name of an added field.
    """

    def __init__(self, rows: Rows, options: OutputOptions) -> None:
        self._field = options.task.field
        added = options.with_error([self._field])
        reject_name_clash(rows.name, rows.columns or (), added)
        self.reserved = added if rows.columns is None else ()

    @contextmanager
    def open(self, path: Path) -> Iterator[Write]:
        """See `RowWriter`."""
        with create(path) as stream:
            yield write_lines(stream, self._field)
            sync(stream, path)


def write_lines(stream: BinaryIO, field: str) -> Write:
    """Return a function that writes rows with their answers and flushes the stream.

    Args:
        field: name of the field for the results of a row.
    """

    def write(block: Block, answers: Sequence[bytes]) -> None:
        pairs = zip(block.json_objects(), answers, strict=True)
        stream.writelines(_line(row, field, answer) for row, answer in pairs)
        stream.flush()

    return write


def _line(row: bytes, field: str, answer: bytes) -> bytes:
    problem = parse_problem(answer)
    if problem is None:
        return _with_field(row, field, answer)
    return _with_field(row if problem.readable else b"{}", ERROR, to_json(problem.message))


def _with_field(row: bytes, name: str, value: bytes) -> bytes:
    head = row[:-1].rstrip()
    return b'%b%b"%b":%b}\n' % (head, b"" if head == b"{" else b",", name.encode(), value)


JSONL = Format(
    (".jsonl", ".ndjson"), lambda source: JsonRows(source.name, source.open), JsonRowWriter
)
