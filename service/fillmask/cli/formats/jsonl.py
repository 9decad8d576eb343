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
    Format,
    OutputOptions,
    Rows,
    UnreadableRow,
    Write,
)
from fillmask.cli.formats.durable_files import write_file
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

    Attributes:
        reserved: names of added fields, if the rows can be read only once. A row with such a field
            is invalid.
    """

    def __init__(self, rows: Rows, options: OutputOptions) -> None:
        self._compressed = options.compressed
        names = options.names(rows, [options.task.field])
        self._names = names[options.task.field], names.get(ERROR, ERROR)
        self.reserved = () if rows.rereadable else tuple(names.values())

    @contextmanager
    def open(self, path: Path) -> Iterator[Write]:
        """See `RowWriter`."""
        with write_file(path, compressed=self._compressed) as stream:
            yield self.write_to(stream)

    def write_to(self, stream: BinaryIO) -> Write:
        """Return a function that writes rows with their answers."""

        def write(block: Block, answers: Sequence[bytes]) -> None:
            pairs = zip(block.json_objects(), answers, strict=True)
            stream.writelines(self._line(row, answer) for row, answer in pairs)

        return write

    def _line(self, row: bytes, answer: bytes) -> bytes:
        field, error = self._names
        problem = parse_problem(answer)
        if problem is None:
            return _with_field(row, field, answer)
        return _with_field(row if problem.readable else b"{}", error, to_json(problem.message))


def _with_field(row: bytes, name: str, value: bytes) -> bytes:
    head = row[:-1].rstrip()
    return b"%b%b%b:%b}\n" % (head, b"" if head == b"{" else b",", to_json(name), value)


JSONL = Format(
    (".jsonl", ".ndjson"), lambda source: JsonRows(source.name, source.open), JsonRowWriter
)
