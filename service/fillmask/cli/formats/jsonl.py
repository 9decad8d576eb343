"""Readers of JSONL and plain text, with a writer of JSONL."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pydantic_core import to_json

from fillmask.cli.formats.answers import parse_problem
from fillmask.cli.formats.base import (
    ERROR,
    Block,
    Fields,
    ListBlock,
    OutputOptions,
    Rows,
    UnreadableRow,
    Write,
    drop_trailing_blanks,
    reject_name_clash,
    slice_batches,
)
from fillmask.cli.formats.durable_files import create, sync
from fillmask.cli.formats.lines import MAX_LINE_BYTES, Stream, read_lines
from fillmask.errors import FillMaskError
from fillmask.parameters.values import describe
from fillmask.strict_json import parse_json

OpenStream = Callable[[], AbstractContextManager[Stream]]


@dataclass(frozen=True)
class LineBlock(ListBlock):
    """Block of lines without their line ends. An overlong line is None."""

    rows: Sequence[bytes | None]

    def fields(self) -> list[Fields | UnreadableRow]:
        """See `Block`."""
        return [
            UnreadableRow(f"The line is longer than {MAX_LINE_BYTES} bytes; shorten it.")
            if line is None
            else self._read(line, self.first + place)
            for place, line in enumerate(self.rows)
        ]

    @abstractmethod
    def _read(self, line: bytes, number: int) -> Fields | UnreadableRow:
        """Parse a line. `number` is the index of the line in the file."""


@dataclass(frozen=True)
class JsonBlock(LineBlock):
    """Block of JSONL lines."""

    def json_objects(self) -> list[bytes]:
        """Return each line without surrounding white space.

        An overlong line becomes an empty object. The writer replaces other unreadable lines.
        """
        return [b"{}" if line is None else line.strip() for line in self.rows]

    def _read(self, line: bytes, number: int) -> Fields | UnreadableRow:
        if not line:
            return UnreadableRow("The line is empty; it must be a JSON object.")
        try:
            value = parse_json(line, "The line", number + 1)
        except FillMaskError as error:
            return UnreadableRow(error.text)
        if isinstance(value, dict):
            return value
        return UnreadableRow(f"The line must be a JSON object (got {describe(value)}).")


@dataclass(frozen=True)
class TextBlock(LineBlock):
    """Block of plain-text lines."""

    field: str

    def _read(self, line: bytes, number: int) -> Fields | UnreadableRow:  # noqa: ARG002 - for JSON errors
        try:
            return {self.field: line.decode()}
        except UnicodeDecodeError:
            return UnreadableRow("The line is not valid UTF-8; encode it as UTF-8.")


class LineRows(Rows):
    """Rows of a file with one row per line.

    Lines of only white space are blank. The reader ignores blank lines at the end of the file.

    Args:
        name: name of the file, for error messages.
        open_stream: function that opens the file at its start.
    """

    def __init__(self, name: str, open_stream: OpenStream) -> None:
        self.name = name
        self._open = open_stream

    def count(self) -> int:
        """See `Rows`."""
        with self._open() as stream:
            return sum(map(len, _lines(stream)))

    def blocks(
        self,
        start: int = 0,
        stop: int | None = None,
        only: Sequence[str] | None = None,  # noqa: ARG002 - the parser reads all fields
    ) -> Iterator[Block]:
        """See `Rows`."""
        with self._open() as stream:
            for first, lines in slice_batches(_lines(stream), start, stop):
                yield self._block(first, lines)

    @abstractmethod
    def _block(self, first: int, lines: Sequence[bytes | None]) -> Block: ...


class JsonRows(LineRows):
    """Rows of a JSONL file."""

    columns = None
    row_parameters = True

    def _block(self, first: int, lines: Sequence[bytes | None]) -> Block:
        return JsonBlock(first, lines)


class TextRows(LineRows):
    """Rows of a plain-text file, one text per line.

    Args:
        field: name for the field of the texts.
    """

    row_parameters = False

    def __init__(self, name: str, open_stream: OpenStream, field: str) -> None:
        super().__init__(name, open_stream)
        self.columns = (field,)
        self._field = field

    def _block(self, first: int, lines: Sequence[bytes | None]) -> Block:
        return TextBlock(first, lines, self._field)


def _lines(stream: Stream) -> Iterator[list[bytes | None]]:
    batches = (
        [b"" if line is not None and line.isspace() else line for line in lines]
        for lines in read_lines(stream)
    )
    return drop_trailing_blanks(batches, b"")


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
