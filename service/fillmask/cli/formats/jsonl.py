"""JSONL, whose output keeps each line of JSON byte for byte."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from pydantic_core import to_json

from fillmask.cli.formats.base import Block, Row, Rows
from fillmask.cli.formats.lines import LineRows
from fillmask.cli.formats.output import (
    ERROR,
    Format,
    Output,
    Write,
    describe_name_clash,
    problem_of,
)
from fillmask.errors import FillMaskError
from fillmask.parameters.values import describe
from fillmask.strict_json import parse_json


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


JSONL = Format((".jsonl", ".ndjson"), JsonRows, JsonRowWriter)
