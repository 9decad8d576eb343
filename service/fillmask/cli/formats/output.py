"""What formats need to write rows with their results."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from pydantic_core import to_json

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import Block, Fields, Rows
from fillmask.cli.progress import print_status
from fillmask.errors import quote

ERROR = "error"
ROW = "row"  # column for the number of a row, from 1

# function that writes rows with their answers, in order. An answer is a line of JSON.
Write = Callable[[Block, Sequence[bytes]], None]


def problem_answer(message: str) -> bytes:
    """Return the answer of a row without results. Other answers have other first fields."""
    return to_json({ERROR: message})


def problem_of(answer: bytes) -> str | None:
    """Return the problem in an answer, or None for an answer with results."""
    if not answer.startswith(b'{"%b":' % ERROR.encode()):
        return None
    message: str = json.loads(answer)[ERROR]
    return message


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields and columns of the results of a task.

    Attributes:
        field: field of an answer in JSONL.
        types: types of the columns in Parquet by name. A list of one type and a dictionary of
            types, for an object, are types too.
        values: function that returns the values of these columns for an answer.
        cells: columns in CSV.
        explode: function that returns the values of these columns for each line of an answer. None
            for one line with the values.
    """

    field: str
    types: Mapping[str, Any]
    values: Callable[[bytes], Fields]
    cells: tuple[str, ...]
    explode: Callable[[bytes], Iterable[Fields]] | None = None

    def row(self, answer: bytes) -> Fields:
        """Return the values of an answer, or its problem."""
        problem = problem_of(answer)
        return self.values(answer) if problem is None else {ERROR: problem}

    def lines(self, answer: bytes) -> Iterable[Fields]:
        """Return the values of each line of an answer, or its problem."""
        if self.explode is None or problem_of(answer) is not None:
            return [self.row(answer)]
        return self.explode(answer)


@dataclass(frozen=True, slots=True)
class Output:
    """What an output adds to its rows."""

    layout: Layout
    report_errors: bool  # whether a row may have an error instead of results
    prefix: str | None = None  # of the names. None means an automatic one, if it is necessary

    def names(self, rows: Rows, results: Iterable[str]) -> dict[str, str]:
        """Return the names of the fields to add, for the results of a row and its error.

        The names are the same for all shards of a file.

        Raises:
            CommandError: the rows have a field with the prefix and the name of a result.
        """
        results = (*results, ERROR) if self.report_errors else tuple(results)
        columns, prefix = rows.find_columns(), self.prefix or ""
        while clash := describe_name_clash(columns, [prefix + result for result in results]):
            if self.prefix is not None:
                raise CommandError(f"{rows.name} {clash}")
            prefix += "fillmask_"
        if prefix and self.prefix is None:
            print_status(
                f"{rows.name} has fields with the names of results, which therefore begin with "
                f"{prefix} (--output-prefix sets another beginning)."
            )
        return {result: prefix + result for result in results}


def describe_name_clash(columns: Iterable[str], added: Iterable[str]) -> str | None:
    """Return the end of an error message about a clash of names, or None without a clash."""
    if not (clash := sorted(set(columns) & set(added))):
        return None
    name = quote(clash[0])
    return f"has the field {name}, which the output adds; set another --output-prefix."


class RowWriter(Protocol):
    """Writer of rows with their results in one format."""

    def write_to(self, stream: BinaryIO, /) -> AbstractContextManager[Write]:
        """Begin to write, to the end of the `with` block.

        Raises:
            CommandError: the format cannot represent a value.
        """
