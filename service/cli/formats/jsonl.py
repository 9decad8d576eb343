"""JSON Lines and plain text: rows in, rows out."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pydantic_core import to_json

from service.api.strict_json import parse_json
from service.cli.formats.answers import problem_of
from service.cli.formats.base import (
    ERROR,
    FILLS,
    Block,
    Fields,
    ListBlock,
    OutputOptions,
    Rows,
    Unreadable,
    Write,
    cut,
    refuse_clash,
    without_blank_end,
)
from service.cli.formats.durable_files import create, sync
from service.cli.formats.lines import MAX_LINE_BYTES, Stream, read_lines
from service.errors import FillMaskError

OpenStream = Callable[[], AbstractContextManager[Stream]]


@dataclass(frozen=True)
class LineBlock(ListBlock):
    """Lines without their ends; None for one that is too long."""

    rows: Sequence[bytes | None]

    def fields(self) -> list[Fields | Unreadable]:
        """See `Block`."""
        return [
            Unreadable(f"The line is longer than {MAX_LINE_BYTES} bytes.")
            if line is None
            else self._read(line, self.first + place)
            for place, line in enumerate(self.rows)
        ]

    @abstractmethod
    def _read(self, line: bytes, number: int) -> Fields | Unreadable:
        """A line, and its number from 0."""


@dataclass(frozen=True)
class JsonBlock(LineBlock):
    """Lines of JSONL."""

    def json_objects(self) -> list[bytes]:
        """See `Block`; as they were written, to the byte."""
        return [b"{}" if line is None else line.strip() for line in self.rows]

    def _read(self, line: bytes, number: int) -> Fields | Unreadable:
        if not line:
            return Unreadable("The line is empty; it must be a JSON object.")
        try:
            value = parse_json(line, "The line", number + 1)
        except FillMaskError as error:
            return Unreadable(error.text)
        return value if isinstance(value, dict) else Unreadable("The line must be a JSON object.")


@dataclass(frozen=True)
class TextBlock(LineBlock):
    """Lines of plain text.

    Attributes:
        field: what they are called.
    """

    field: str

    def _read(self, line: bytes, number: int) -> Fields | Unreadable:  # noqa: ARG002 - JSON's errors have it
        try:
            return {self.field: line.decode()}
        except UnicodeDecodeError:
            return Unreadable("The line is not valid UTF-8.")


class LineRows(Rows):
    """The rows of a file with a row a line.

    Lines of nothing but white space are blank; those at the end are no rows.

    Args:
        name: of the file, for errors.
        open_stream: opens it at its start.
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
        only: Sequence[str] | None = None,  # noqa: ARG002 - nothing is gained by less of a line
    ) -> Iterator[Block]:
        """See `Rows`."""
        with self._open() as stream:
            for first, lines in cut(_lines(stream), start, stop):
                yield self._block(first, lines)

    @abstractmethod
    def _block(self, first: int, lines: Sequence[bytes | None]) -> Block: ...


class JsonRows(LineRows):
    """The rows of a JSONL file."""

    columns = None
    row_parameters = True

    def _block(self, first: int, lines: Sequence[bytes | None]) -> Block:
        return JsonBlock(first, lines)


class TextRows(LineRows):
    """The rows of a file of texts.

    Args:
        name: of the file, for errors.
        open_stream: opens it at its start.
        field: what the texts are called.
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
    return without_blank_end(batches, b"")


class JsonOutput:
    """Writes JSONL.

    Args:
        rows: what is written.
        given: what the rows are given.

    Raises:
        CommandError: the rows have a field of the same name.
    """

    def __init__(self, rows: Rows, given: OutputOptions) -> None:
        refuse_clash(rows.name, rows.columns or (), given.fields)
        self.reserved = given.fields if rows.columns is None else ()

    @contextmanager
    def writing(self, path: Path) -> Iterator[Write]:
        """See `Output`."""
        with create(path) as stream:
            yield write_lines(stream)
            sync(stream, path)


def write_lines(stream: BinaryIO) -> Write:
    """Write rows and their answers to a stream as they come."""

    def write(block: Block, answers: Sequence[bytes]) -> None:
        pairs = zip(block.json_objects(), answers, strict=True)
        stream.writelines(_line(row, answer) for row, answer in pairs)
        stream.flush()

    return write


def _line(row: bytes, answer: bytes) -> bytes:
    problem = problem_of(answer)
    if problem is None:
        return _with_field(row, FILLS, answer)
    return _with_field(row if problem.readable else b"{}", ERROR, to_json(problem.sentence))


def _with_field(row: bytes, name: str, value: bytes) -> bytes:
    head = row[:-1].rstrip()
    return b'%b%b"%b":%b}\n' % (head, b"" if head == b"{" else b",", name.encode(), value)
