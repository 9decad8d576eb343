"""CSV: a line for each fill, the columns of its row before it."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from service.command.answers import fills_of, problem_of
from service.command.disk import create, sync
from service.command.outputs import ERROR, Given, Write, refuse_clash
from service.command.rows import Block, Fields, Rows, Unreadable, as_json
from service.tasks.options import FillOptions

_PLACES = ("row", "mask", "rank")
_ALWAYS = ("score", "token", "token_str", "sequence")
_SOMETIMES = ("log_prob", "target_score", "tokens", "token_strs", "window")


class CsvOutput:
    """Writes CSV.

    Args:
        rows: what is written; all are looked through where each has fields of its own.
        given: what the rows are given.

    Raises:
        CommandError: the rows have a field of the same name.
    """

    def __init__(self, rows: Rows, given: Given) -> None:
        columns = _columns_of(rows)
        sometimes = _SOMETIMES if rows.row_parameters else _of_fills(given.options)
        self._fill_columns = (*_ALWAYS, *sometimes)
        errors = (ERROR,) if given.errors else ()
        self._own_columns = (*_PLACES, *self._fill_columns, *errors)
        self.reserved = self._own_columns if rows.columns is None and given.errors else ()
        if not self.reserved:
            refuse_clash(rows.name, columns, self._own_columns)
        self._columns = tuple(column for column in columns if column not in self.reserved)

    @contextmanager
    def writing(self, path: Path) -> Iterator[Write]:
        """See `Output`."""
        with io.TextIOWrapper(create(path), encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow((*self._columns, *self._own_columns))

            def write(block: Block, answers: Sequence[bytes]) -> None:
                pairs = zip(block.fields(), answers, strict=True)
                for number, (fields, answer) in enumerate(pairs, block.first + 1):
                    writer.writerows(self._lines(number, fields, answer))

            yield write
            sync(stream, path)

    def _lines(
        self, number: int, fields: Fields | Unreadable, answer: bytes
    ) -> Iterator[list[str]]:
        """A row's lines."""
        problem = problem_of(answer)
        readable = problem is None or problem.readable
        known = {} if isinstance(fields, Unreadable) or not readable else fields
        row = [_cell(known.get(column)) for column in self._columns]
        if problem:
            empty = [""] * (len(self._own_columns) - 2)
            yield [*row, str(number), *empty, problem.sentence]
            return
        for mask, fills in enumerate(fills_of(answer), 1):
            for rank, fill in enumerate(fills, 1):
                cells = [_cell(fill.get(column)) for column in self._fill_columns]
                no_error = [""] * (len(self._own_columns) - len(_PLACES) - len(cells))
                yield [*row, str(number), str(mask), str(rank), *cells, *no_error]


def _columns_of(rows: Rows) -> tuple[str, ...]:
    """The rows' fields, in the order in which they are first seen."""
    if rows.columns is not None:
        return rows.columns
    found: dict[str, None] = {}
    for block in rows.blocks():
        for fields in block.fields():
            if not isinstance(fields, Unreadable):
                found |= dict.fromkeys(fields)
    return tuple(found)


def _of_fills(options: FillOptions) -> tuple[str, ...]:
    """What fills have beside what all have; it hangs on the options alone, so that shards agree."""
    columns = []
    if options.targets or options.granularity == "word" or options.strategy == "joint":
        columns += ["log_prob", "tokens"]
    if options.targets:
        columns.append("target_score")
    if options.strategy == "joint":
        columns.append("token_strs")
    if options.on_long_text == "window":
        columns.append("window")
    return tuple(column for column in _SOMETIMES if column in columns)


def _cell(value: Any) -> str:
    """A value as a cell: a text as it is, nothing as nothing, anything else as JSON has it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    written = as_json(value).decode()
    # what has no kind of its own in JSON, such as a date, is a text there
    return str(json.loads(written)) if written.startswith('"') else written
