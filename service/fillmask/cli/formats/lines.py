"""Files with one row per line: plain text, and JSONL, whose output keeps each line as it is."""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from pydantic_core import to_json

from fillmask.cli.formats.base import Block, Row, Rows, Source
from fillmask.cli.formats.output import (
    ERROR,
    Output,
    Write,
    describe_name_clash,
    problem_of,
)
from fillmask.errors import FillMaskError
from fillmask.parameters.values import describe
from fillmask.strict_json import parse_json
from fillmask.tables.streams import ENCODE, MAX_LINE_BYTES, Stream, read_lines

_END = re.compile(rb"\r?\n?\Z")


class LineRows(Rows):
    """Rows of a file with one row per line.

    Lines of only white space are blank, and no rows at the end of the file.
    """

    def batches(self, _only: Sequence[str] | None = None, /) -> Iterator[Sequence[bytes | None]]:
        with self.source.open() as stream:
            yield from self.lines(stream)

    def lines(self, stream: Stream) -> Iterator[Sequence[bytes | None]]:
        """Read the lines without their ends. A line that is too long is None."""
        batches = (
            [line and (b"" if line.isspace() else _END.sub(b"", line)) for line in lines]
            for lines in read_lines(stream)
        )
        return drop_trailing_blanks(batches)

    def parse(self, item: bytes | None, number: int) -> Row:
        if item is None:
            return Row({}, f"The line is longer than {MAX_LINE_BYTES} bytes; shorten it.")
        return self.parse_line(item, number)

    @abstractmethod
    def parse_line(self, line: bytes, number: int) -> Row: ...


def drop_trailing_blanks(
    batches: Iterable[Sequence[bytes | None]],
) -> Iterator[list[bytes | None]]:
    """Drop the blank lines after the last line that is not blank."""
    held: list[bytes | None] = []
    for batch in batches:
        held += batch
        whole = len(held)
        while whole and held[whole - 1] == b"":
            whole -= 1
        if whole:
            yield held[:whole]
        held = held[whole:]


class TextRows(LineRows):
    """Rows of a plain-text file, whose texts get the name of the field."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.columns: tuple[str, ...] = (source.field,)

    def parse_line(self, line: bytes, number: int) -> Row:  # noqa: ARG002 - for messages about JSON
        try:
            return Row({self.columns[0]: line.decode()})
        except UnicodeDecodeError:
            return Row({}, f"The line {ENCODE}.")


class JsonRows(LineRows):
    """Rows of a JSONL file.

    Attributes:
        reserved: names of added fields, if the rows can be read only once. A row with such a field
            is invalid.
    """

    row_parameters = True
    label = "The line"  # name of a row's JSON, for error messages
    reserved: tuple[str, ...] = ()

    def parse_line(self, line: bytes, number: int) -> Row:
        if not line:
            return Row({}, f"{self.label} is empty; it must be a JSON object.")
        try:
            fields = parse_json(line, self.label, number + 1)
        except FillMaskError as error:
            return Row({}, error.text)
        if not isinstance(fields, dict):
            return Row({}, f"{self.label} must be a JSON object (got {describe(fields)}).")
        if self.reserved and (clash := describe_name_clash(fields, self.reserved)):
            return Row({}, f"The row {clash}")
        return Row(fields, line=line.strip())


class JsonRowWriter:
    """Writer of a JSONL file."""

    def __init__(self, rows: Rows, output: Output) -> None:
        names = output.names(rows, [output.layout.field])
        self._field = to_json(names[output.layout.field])
        self._error = to_json(names.get(ERROR, ERROR))
        if isinstance(rows, JsonRows) and not rows.source.files:
            rows.reserved = tuple(names.values())

    @contextmanager
    def write_to(self, stream: BinaryIO) -> Iterator[Write]:
        def write(block: Block, answers: Sequence[bytes]) -> None:
            pairs = zip(block.rows(), answers, strict=True)
            stream.writelines(self._line(row, answer) for row, answer in pairs)

        yield write

    def _line(self, row: Row, answer: bytes) -> bytes:
        problem = problem_of(answer)
        field = b"%b:%b" % (
            (self._field, answer) if problem is None else (self._error, to_json(problem))
        )
        head = row.to_json()[:-1].rstrip()
        return b"%b%b%b}\n" % (head, b"" if head == b"{" else b",", field)
