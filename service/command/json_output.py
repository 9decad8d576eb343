"""JSONL: a row as it was written, to the byte, and its fills behind its own fields."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pydantic_core import to_json

from service.command.answers import problem_of
from service.command.disk import create, sync
from service.command.outputs import ERROR, FILLS, Given, Write, refuse_clash
from service.command.rows import Block, Rows


class JsonOutput:
    """Writes JSONL.

    Args:
        rows: what is written.
        given: what the rows are given.

    Raises:
        CommandError: the rows have a field of the same name.
    """

    def __init__(self, rows: Rows, given: Given) -> None:
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
